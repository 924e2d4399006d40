"""What to do next for one residency: a pure decision over a snapshot. One change at a time, then look again.

A version leaves a node in the one safe order: stop routing (draining) → let requests end → unload → grace → delete
files. A lost command is sent again with the same generation; a node that has brought it to an end already only says so
again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from cachecontrol.states import Desired, NodeStatus, Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A residency, its node and its version at one moment."""

    desired: Desired
    observed: Observed
    generation: int
    acted_generation: int
    command_sent_at: datetime | None
    retry_at: datetime | None
    drain_until: datetime | None
    state_changed_at: datetime
    is_servable: bool
    is_revoked: bool
    fits_node: bool
    node_status: NodeStatus
    engine_healthy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """``command_deadline``: a command without a sign of life for so long is sent again. ``drain``: see above."""

    command_deadline: timedelta
    drain: timedelta


@dataclass(frozen=True, slots=True)
class SendWarm:
    """Send the node the command to load this generation."""


@dataclass(frozen=True, slots=True)
class SendEvict:
    """Send the node the command to unload, and to delete the files when the grace is over."""


@dataclass(frozen=True, slots=True)
class StartDrain:
    """Stop routing now; the command to unload follows after ``until``."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Withdraw:
    """The version may not be wanted here any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Forget:
    """A revoked version is gone from the node and never comes back: nothing is left to know."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now."""

    reason: str


Decision = SendWarm | SendEvict | StartDrain | Withdraw | Forget | Wait


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    status: NodeStatus
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class MarkLost:
    """Nothing was heard of the node for too long. Its engine may well go on answering."""


def decide(snapshot: Snapshot, now: datetime, *, timing: Timing) -> Decision:
    """The next change for one residency."""
    if snapshot.desired is Desired.GPU:
        return _towards_gpu(snapshot, now, timing)
    return _towards_absent(snapshot, now, timing)


def decide_node(node: NodeSnapshot, now: datetime, *, timeout: timedelta) -> MarkLost | Wait:
    """Whether the node counts as lost."""
    if node.status is NodeStatus.UP and (node.last_seen_at is None or node.last_seen_at + timeout < now):
        return MarkLost()
    return Wait("heard of lately" if node.status is NodeStatus.UP else "not up")


def is_settled(*, desired: Desired, observed: Observed, generation: int, acted_generation: int) -> bool:
    """Whether the node has brought to an end what was asked of it last, well or not."""
    ends = {Observed.LOADED, Observed.FAILED} if desired is Desired.GPU else {Observed.ABSENT}
    return acted_generation == generation and observed in ends


def _towards_gpu(snapshot: Snapshot, now: datetime, timing: Timing) -> Decision:
    if not snapshot.is_servable:
        return Withdraw("the version was withdrawn")
    if not snapshot.fits_node:
        return Withdraw("the node has another base revision or too few ranks now")
    if _is_settled(snapshot):
        return Wait("it is loaded" if snapshot.observed is Observed.LOADED else "it failed for good")
    return _unless_waiting(snapshot, now, timing, SendWarm())


def _towards_absent(snapshot: Snapshot, now: datetime, timing: Timing) -> Decision:
    if _is_settled(snapshot):
        return Forget() if snapshot.is_revoked else Wait("it is absent")
    if snapshot.observed in (Observed.LOADING, Observed.LOADED):
        # What is revoked is taken from the engine at once; its files outlast the requests that still run.
        return StartDrain(until=now if snapshot.is_revoked else now + timing.drain)
    if snapshot.observed is Observed.DRAINING and _may_still_run(snapshot, now):
        return Wait("requests may still be running")
    return _unless_waiting(snapshot, now, timing, SendEvict())


def _may_still_run(snapshot: Snapshot, now: datetime) -> bool:
    return not snapshot.is_revoked and snapshot.drain_until is not None and now < snapshot.drain_until


def _unless_waiting(snapshot: Snapshot, now: datetime, timing: Timing, send: SendWarm | SendEvict) -> Decision:
    if snapshot.node_status is not NodeStatus.UP:
        return Wait("the node is not up")
    if not snapshot.engine_healthy:
        return Wait("the engine is not healthy")
    if snapshot.retry_at is not None and now < snapshot.retry_at:
        return Wait("the last try failed, the next one comes later")
    if snapshot.command_sent_at is None:
        return send
    heard = max(snapshot.command_sent_at, snapshot.state_changed_at)
    return send if heard + timing.command_deadline < now else Wait("the command is on its way")


def _is_settled(snapshot: Snapshot) -> bool:
    return is_settled(
        desired=snapshot.desired,
        observed=snapshot.observed,
        generation=snapshot.generation,
        acted_generation=snapshot.acted_generation,
    )
