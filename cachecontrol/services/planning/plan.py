"""Planning every pool, and doing a few of the plan's moves: each is one short transaction that looks again first."""

import logging
from datetime import timedelta
from typing import Final

from cachecontrol.models import Node
from cachecontrol.placement.changes import between
from cachecontrol.placement.plan import make_plan
from cachecontrol.services.leases import give_back_lease, take_lease
from cachecontrol.services.planning.facts import Pool, read_pool
from cachecontrol.services.planning.moves import make_move

logger = logging.getLogger(__name__)

_LASTS: Final = timedelta(minutes=2)
# Commands of one pass: a few for each node, and never so many that the next pass has to wait.
_COMMANDS_PER_NODE: Final = 4
_MOST_COMMANDS: Final = 64


def plan_pools() -> int:
    """Plan every pool that nobody else is planning; how many moves were made. One pool's trouble stops no other."""
    digests = Node.objects.order_by().values_list("base_revision__digest", flat=True).distinct()
    return sum(_plan_alone(digest) for digest in digests)


def plan_pool(digest: str) -> int:
    """Plan the pool and make the next moves; how many."""
    pool = read_pool(digest)
    if pool is None:
        return 0
    plan = make_plan(pool.nodes, pool.versions, pool.settings, previous=pool.held)
    moves = between(plan, pool.held, limit=_limit(pool), arriving=pool.arriving)
    return sum(make_move(move, pool=pool) for move in moves)


def _plan_alone(digest: str) -> int:
    lease = f"plan {digest}"
    until = take_lease(lease, lasts=_LASTS)
    if until is None:
        return 0
    try:
        return plan_pool(digest)
    except Exception:
        logger.exception("pool %s is planned again by the next pass", digest)
        return 0
    finally:
        give_back_lease(lease, until=until)


def _limit(pool: Pool) -> int:
    return min(_COMMANDS_PER_NODE * sum(node.is_up for node in pool.nodes), _MOST_COMMANDS)
