"""What to do next about one node: a pure decision over a snapshot. One change at a time, then look again.

An engine in which a load failed may keep its remains in a slot (tainted); one whose answers can't be trusted is
poisoned. Only a restart helps either, so such a node is emptied of requests and its engine restarted by its agent,
which was given a way to do so by its operator. A restart is over when the engine has another boot id. One that doesn't
help, or doesn't happen, is asked for again later and later.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cachecontrol.states import NodeStatus

FIRST_PAUSE: Final = timedelta(minutes=1)
MAX_PAUSE: Final = timedelta(hours=1)
# Good for so long after a restart: the next one is the first again.
CALM: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSnapshot:
    """A node at one moment.

    ``recycles`` counts the restarts asked for in a row; ``recycle_after`` is the earliest time of the next one.
    ``is_stuck``: the alarm was raised that nobody can restart it. ``is_pool_recycling``: another node of its pool is
    being restarted.
    """

    status: NodeStatus
    last_seen_at: datetime | None
    boot_id: str = ""
    tainted: bool = False
    poisoned: bool = False
    restartable: bool = False
    recycling_since: datetime | None = None
    recycling_boot_id: str = ""
    recycles: int = 0
    recycle_after: datetime | None = None
    is_stuck: bool = False
    is_pool_recycling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTiming:
    """``timeout``: silent for so long is lost. ``drain``: before a restart. ``recycle``: a restart takes no longer."""

    timeout: timedelta
    drain: timedelta
    recycle: timedelta


@dataclass(frozen=True, slots=True)
class MarkLost:
    """Nothing was heard of the node for too long. Its engine may well go on answering."""


@dataclass(frozen=True, slots=True)
class StartRecycle:
    """Stop routing to the node; after the drain its agent is told to restart the engine. The next try not before."""

    recycles: int
    next_after: datetime


@dataclass(frozen=True, slots=True)
class EndRecycle:
    """The engine was restarted."""


@dataclass(frozen=True, slots=True)
class AbandonRecycle:
    """The engine was not restarted in time: it goes on as it is, until the next try, which is not before."""

    next_after: datetime


@dataclass(frozen=True, slots=True)
class RaiseAlarm:
    """The engine needs a restart, and its agent was given no way to do it: somebody has to."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Nothing to do now."""

    reason: str


NodeDecision = MarkLost | StartRecycle | EndRecycle | AbandonRecycle | RaiseAlarm | Leave


def decide_node(node: NodeSnapshot, now: datetime, *, timing: NodeTiming) -> NodeDecision:
    """The next change for one node."""
    if node.status is NodeStatus.UP and (node.last_seen_at is None or node.last_seen_at + timing.timeout < now):
        return MarkLost()
    if node.recycling_since is not None:
        return _while_recycling(node, now, node.recycling_since, timing)
    if not (node.tainted or node.poisoned):
        return Leave("its engine is sound")
    if not node.restartable:
        return Leave("somebody was told") if node.is_stuck else RaiseAlarm()
    return _unless_too_early(node, now)


def restart_due(node: NodeSnapshot, now: datetime, *, timing: NodeTiming) -> str | None:
    """The boot id of the engine's life that its agent is to end now, if any. Asking again is harmless."""
    if node.recycling_since is None or node.boot_id != node.recycling_boot_id:
        return None
    # Nobody is to wait for the answers of an engine that can't be trusted.
    drain = timedelta(0) if node.poisoned else timing.drain
    return node.recycling_boot_id if node.recycling_since + drain <= now else None


def next_recycle(node: NodeSnapshot, now: datetime) -> StartRecycle:
    """A restart now, and when the one after it may come: 1, 2, 4 … minutes later, at most an hour."""
    is_calm = node.recycle_after is None or node.recycle_after + CALM < now
    recycles = 1 if is_calm else node.recycles + 1
    return StartRecycle(recycles=recycles, next_after=now + _pause_after(recycles))


def _pause_after(recycles: int) -> timedelta:
    return min(FIRST_PAUSE * (1 << min(max(recycles - 1, 0), 10)), MAX_PAUSE)


def _while_recycling(node: NodeSnapshot, now: datetime, since: datetime, timing: NodeTiming) -> NodeDecision:
    if node.boot_id not in ("", node.recycling_boot_id):
        return EndRecycle()
    if since + timing.recycle < now:
        # Counted from now: the wait for a restart may be longer than its pause, and the node would never answer.
        return AbandonRecycle(next_after=now + _pause_after(node.recycles))
    return Leave("its engine is being restarted")


def _unless_too_early(node: NodeSnapshot, now: datetime) -> NodeDecision:
    if node.status is not NodeStatus.UP or not node.boot_id:
        return Leave("it is not up")
    if node.recycle_after is not None and now < node.recycle_after:
        return Leave("it was restarted lately")
    if node.is_pool_recycling and not node.poisoned:
        return Leave("another node of its pool is being restarted")
    return next_recycle(node, now)
