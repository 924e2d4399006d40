"""What to do next for one residency: a pure decision over a snapshot. One change at a time, then look again.

A version leaves an engine in the one safe order: stop routing (draining) → let requests end → unload → grace → delete
files; the last two only if the files aren't wanted any more either. A lost command is sent again with the same
generation; a node that has brought it to an end already only says so again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from cachecontrol.states import WORTH_ANOTHER_TRY, Desired, NodeStatus, Observed


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
    is_recycling: bool
    watches_use: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """``command_deadline``: a command without a sign of life for so long is sent again.

    ``drain``: how long requests may take to end. ``routing_stop``: how long until no gateway sends any more; that is
    all the wait before an unload where the node itself watches for the last request to end (``watches_use``).
    """

    command_deadline: timedelta
    drain: timedelta
    routing_stop: timedelta


@dataclass(frozen=True, slots=True)
class SendWarm:
    """Send the node the command to load this generation."""


@dataclass(frozen=True, slots=True)
class SendFetch:
    """Send the node the command to bring the files to its disk, and nothing into the engine."""


@dataclass(frozen=True, slots=True)
class SendEvict:
    """Send the node the command to unload, and, unless the files are wanted, to delete them when the grace is over."""

    keeps_files: bool = False


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


Send = SendWarm | SendFetch | SendEvict
Decision = Send | StartDrain | Withdraw | Forget | Wait

_RESTS = {
    Desired.GPU: frozenset({Observed.LOADED, Observed.FAILED}),
    Desired.DISK: frozenset({Observed.ON_DISK, Observed.FAILED}),
    Desired.ABSENT: frozenset({Observed.ABSENT}),
}


def decide(snapshot: Snapshot, now: datetime, *, timing: Timing) -> Decision:
    """The next change for one residency."""
    if snapshot.desired is Desired.ABSENT:
        return _towards_absent(snapshot, now, timing)
    if not snapshot.is_servable:
        return Withdraw("the version was withdrawn")
    if not snapshot.fits_node:
        return Withdraw("the node has another base revision or too few ranks now")
    if _is_settled(snapshot):
        return Wait("it failed for good" if snapshot.observed is Observed.FAILED else "it is where it is wanted")
    if snapshot.desired is Desired.GPU:
        return _unless_waiting(snapshot, now, timing, SendWarm())
    return _out_of_engine(snapshot, now, timing, SendEvict(keeps_files=True), otherwise=SendFetch())


def failed_for_good(*, observed: str, generation: int, acted_generation: int, error_class: str) -> bool:
    """Whether nothing more happens until somebody wants it again."""
    return observed == Observed.FAILED and acted_generation == generation and error_class not in WORTH_ANOTHER_TRY


def is_settled(*, desired: Desired, observed: Observed, generation: int, acted_generation: int) -> bool:
    """Whether the node has brought to an end what was asked of it last, well or not."""
    return acted_generation == generation and observed in _RESTS[desired]


def _towards_absent(snapshot: Snapshot, now: datetime, timing: Timing) -> Decision:
    if _is_settled(snapshot):
        return Forget() if snapshot.is_revoked else Wait("it is absent")
    return _out_of_engine(snapshot, now, timing, SendEvict(), otherwise=SendEvict())


def _out_of_engine(
    snapshot: Snapshot, now: datetime, timing: Timing, unload: SendEvict, *, otherwise: SendFetch | SendEvict
) -> Decision:
    """Drain and unload what may be in the engine; ``otherwise`` is for what isn't."""
    if snapshot.observed in (Observed.LOADING, Observed.LOADED):
        return StartDrain(until=now + _drain_of(snapshot, timing))
    if snapshot.observed is not Observed.DRAINING:
        return _unless_waiting(snapshot, now, timing, otherwise)
    if _may_still_run(snapshot, now):
        return Wait("requests may still be running")
    return _unless_waiting(snapshot, now, timing, unload)


def _drain_of(snapshot: Snapshot, timing: Timing) -> timedelta:
    # What is revoked is taken from the engine at once; its files outlast the requests that still run.
    if snapshot.is_revoked:
        return timedelta(0)
    return timing.routing_stop if snapshot.watches_use else timing.drain


def _may_still_run(snapshot: Snapshot, now: datetime) -> bool:
    return not snapshot.is_revoked and snapshot.drain_until is not None and now < snapshot.drain_until


def _unless_waiting(snapshot: Snapshot, now: datetime, timing: Timing, send: Send) -> Decision:
    if reason := _hindrance(snapshot, send):
        return Wait(reason)
    if snapshot.retry_at is not None and now < snapshot.retry_at:
        return Wait("the last try failed, the next one comes later")
    if snapshot.command_sent_at is None:
        return send
    heard = max(snapshot.command_sent_at, snapshot.state_changed_at)
    return send if heard + timing.command_deadline < now else Wait("the command is on its way")


def _hindrance(snapshot: Snapshot, send: Send) -> str:
    """Why the node can't do it now. Files come to its disk without the engine."""
    if snapshot.node_status is not NodeStatus.UP:
        return "the node is not up"
    if isinstance(send, SendFetch):
        return ""
    if snapshot.is_recycling:
        return "the engine is being restarted"
    return "" if snapshot.engine_healthy else "the engine is not healthy"


def _is_settled(snapshot: Snapshot) -> bool:
    return is_settled(
        desired=snapshot.desired,
        observed=snapshot.observed,
        generation=snapshot.generation,
        acted_generation=snapshot.acted_generation,
    )
