"""TCP ports on the loopback interface, chosen once and kept.

Ports come from below the kernel's ephemeral range: an outgoing connection of any program can take a port of that
range between two starts of ours.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
from typing import TYPE_CHECKING

from deploy.embedded.errors import NotProvisioned

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LOOPBACK = "127.0.0.1"
_RANGE = range(20000, 30000)
_TRIES = 200


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port(*, avoid: Iterable[int] = ()) -> int:
    """A free loopback port that isn't in `avoid`.

    Raises:
        NotProvisioned: no free port was found.

    """
    taken = set(avoid)
    for port in random.SystemRandom().sample(_RANGE, _TRIES):
        if port not in taken and is_free(port):
            return port
    raise NotProvisioned(f"no free port on {LOOPBACK} between {_RANGE.start} and {_RANGE.stop - 1}")


def settle_ports(file: Path, names: Iterable[str]) -> dict[str, int]:
    """The port of each name, from `file` where it is known and still free, else newly chosen; `file` is rewritten.

    Entries of other names in the file are kept, so that an optional process finds its old port again.
    """
    known: dict[str, int] = json.loads(file.read_text())["ports"] if file.exists() else {}
    chosen: dict[str, int] = {}
    for name in names:
        port = known.get(name)
        if port is None or port in chosen.values() or not is_free(port):
            port = free_port(avoid=(*known.values(), *chosen.values()))
        chosen[name] = port
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps({"ports": {**known, **chosen}}, indent=2, sort_keys=True) + "\n")
    fresh.replace(file)
    return chosen
