"""Which node a session likes best, so that its next request finds the prefix that the last one left in a cache.

Rendezvous hashing (Thaler and Ravishankar, 1998): each node's weight for a session depends on nothing but the two, so
that all processes agree without telling each other anything, and a node that comes or goes moves only its own sessions.
How far a liked node may be busier than the next is the rule of cache-aware routers (SGLang's, and vLLM's after it): a
difference in requests and a ratio, both exceeded.
"""

import zlib
from typing import Final

BUSIER_BY: Final = 8
BUSIER_TIMES: Final = 1.5

_MASK: Final = 0xFFFFFFFF


def session_seed(session: str) -> int:
    """The number of a session, the same in every process."""
    return zlib.crc32(session.encode("utf-8", "surrogatepass"))


def weight(node_seed: int, seed: int) -> int:
    """How much a session likes a node (0..2^32-1); the finalizer of MurmurHash3 over both."""
    mixed = (node_seed ^ (seed * 0x9E3779B1)) & _MASK
    mixed = ((mixed ^ (mixed >> 16)) * 0x85EBCA6B) & _MASK
    mixed = ((mixed ^ (mixed >> 13)) * 0xC2B2AE35) & _MASK
    return mixed ^ (mixed >> 16)


def is_too_busy(liked: int, other: int) -> bool:
    """Whether a liked node with that many requests is so much busier than the other that the cache isn't worth it."""
    return liked - other > BUSIER_BY and liked > other * BUSIER_TIMES
