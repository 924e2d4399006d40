"""Planning every pool, and doing a few of the plan's moves: each is one short transaction that looks again first.

Every pool is planned anew each time, which also makes up for what was missed. What can't wait for that is taken into
what is known already (``replan_pool``): of the largest pools most of the time goes into reading how much each version
is asked for, and that is no other a moment later.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from cachecontrol.models import Node
from cachecontrol.placement.changes import between
from cachecontrol.placement.facts import Holding, Plan
from cachecontrol.placement.plan import make_plan
from cachecontrol.placement.replan import after, changes_since, resting_on
from cachecontrol.services.leases import give_back_lease, take_lease
from cachecontrol.services.planning.facts import Pool, read_again, read_pool
from cachecontrol.services.planning.moves import make_move
from cachecontrol.services.planning.soon import replan_soon

logger = logging.getLogger(__name__)

_LASTS: Final = timedelta(minutes=2)
# Commands of one pass: a few for each node, and never so many that the next pass has to wait.
_COMMANDS_PER_NODE: Final = 4
_MOST_COMMANDS: Final = 64
# How long it is good enough to know how much versions are asked for. Each process plans a pool about so often.
_FRESH: Final = timedelta(minutes=1)
# With more changes than this, planning anew takes less time than taking in one after the other.
_FEW: Final = 8


@dataclass(frozen=True, slots=True)
class _Known:
    """What this process has planned last of a pool."""

    pool: Pool
    plan: Plan
    read_at: datetime


# By digest; pools are few, and each process keeps its own.
_known: dict[str, _Known] = {}


def plan_pools() -> int:
    """Plan every pool that nobody else is planning; how many moves were made. One pool's trouble stops no other."""
    digests = Node.objects.order_by().values_list("base_revision__digest", flat=True).distinct()
    return sum(_alone(digest, plan_pool) or 0 for digest in digests)


def plan_pool(digest: str) -> int:
    """Plan the pool and make the next moves; how many."""
    read_at = timezone.now()
    pool = read_pool(digest)
    if pool is None:
        _known.pop(digest, None)
        return 0
    plan = make_plan(pool.nodes, pool.versions, pool.settings, previous=pool.held)
    _known[digest] = _Known(pool, plan, read_at)
    return _approach(plan, pool.held, pool)


def replan_pool(digest: str) -> int:
    """Take into the pool's plan what has changed since it was made, and make the next moves; how many.

    Whoever plans the pool now may have read it before the change: then it is tried again shortly.
    """
    made = _alone(digest, _take_in)
    if made is None:
        replan_soon(digest)
    return made or 0


def _take_in(digest: str) -> int:
    known = _known.get(digest)
    is_fresh = known is not None and known.read_at + _FRESH > timezone.now()
    pool = read_again(known.pool) if known is not None and is_fresh else None
    if known is None or pool is None:
        return plan_pool(digest)
    changes = changes_since(known.plan, nodes=pool.nodes, versions=pool.versions)
    if len(changes) > _FEW:
        return plan_pool(digest)
    held = plan = resting_on(known.plan, pool.held, changes)
    for change in changes:
        plan = after(plan, change)
    _known[digest] = _Known(pool, plan, known.read_at)
    return _approach(plan, held.only(plan.needs), pool)


def _approach(plan: Plan, held: Holding, pool: Pool) -> int:
    moves = between(plan, held, limit=_limit(pool), arriving=pool.arriving)
    return sum(make_move(move, pool=pool) for move in moves)


def _alone(digest: str, act: Callable[[str], int]) -> int | None:
    """What ``act`` made of the pool; None: somebody else is planning it."""
    lease = f"plan {digest}"
    until = take_lease(lease, lasts=_LASTS)
    if until is None:
        return None
    try:
        return act(digest)
    except Exception:
        logger.exception("pool %s is planned again by the next pass", digest)
        return 0
    finally:
        give_back_lease(lease, until=until)


def _limit(pool: Pool) -> int:
    return min(_COMMANDS_PER_NODE * sum(node.is_up for node in pool.nodes), _MOST_COMMANDS)
