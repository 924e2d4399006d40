"""What a node's report says against what is known of it: pure decisions over one residency or one report."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

from cachecontrol.reconcile import failed_for_good
from cachecontrol.states import Desired, Observed, Tier

# A report may be older than an outcome that overtook it: so long it proves nothing about what changed last.
REPORT_LAG: Final = timedelta(seconds=3)
# So long a report that says "unchanged" is believed; then the whole is looked at once more.
TRUST: Final = timedelta(minutes=10)
# A report that was sent so much earlier than the newest one was not overtaken by it: the node's clock was put back.
OVERTAKEN_WITHIN: Final = timedelta(minutes=1)
# More names of one kind than this are neither kept nor told: the count is enough.
MAX_NAMES: Final = 100
_IN_ENGINE: Final = frozenset({Observed.LOADING, Observed.LOADED, Observed.DRAINING})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """The state of a node.

    Attributes:
        boot_id: of this life of its engine.
        loaded: names that the engine lists.
        mismatched: those of them that it has from another path than the node's own.
        on_disk: names whose files are complete on the node's disk.
        dropped: why the node removed files by itself since its last accepted report, by name.
        tiers: where names are in the engine, if the engine tells; None if it doesn't.
        unchanged: ``loaded`` and ``on_disk`` are left out, being those of the last accepted report.
        tainted: a load failed in this life of the engine, and may have left something in a slot.
        poisoned: the engine's answers can't be trusted.
        restartable: the agent was given a way to restart the engine.
        disk_used_bytes, disk_free_bytes: of the node's cache, and of the file system it is on.
        sent_at: when, by the node's own clock; None where it doesn't say.

    """

    boot_id: str
    engine_healthy: bool
    loaded: frozenset[str] = frozenset()
    on_disk: frozenset[str] = frozenset()
    mismatched: frozenset[str] = frozenset()
    dropped: dict[str, str] = field(default_factory=dict)
    tiers: dict[str, Tier] | None = None
    unchanged: bool = False
    tainted: bool = False
    poisoned: bool = False
    restartable: bool = False
    disk_used_bytes: int | None = None
    disk_free_bytes: int | None = None
    sent_at: datetime | None = None


class Held(Protocol):
    """What is known of one version on the node: a residency, as far as it is looked at here."""

    @property
    def desired(self) -> str: ...
    @property
    def observed(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def acted_generation(self) -> int: ...
    @property
    def error_class(self) -> str: ...
    @property
    def state_changed_at(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Strangers:
    """Names in an engine that shouldn't be there: to be alarmed of, sorted, and at most ``MAX_NAMES`` of each kind."""

    unknown: tuple[str, ...] = ()
    mismatched: tuple[str, ...] = ()


def is_overtaken(report: NodeReport, newest_at: datetime | None) -> bool:
    """Whether a newer report came before it, by the node's own clock: it says nothing of how the node is now."""
    if report.sent_at is None or newest_at is None:
        return False
    return newest_at - OVERTAKEN_WITHIN < report.sent_at < newest_at


def is_broken(held: Held) -> bool:
    """Whether it failed for good: nothing more happens until somebody wants it again."""
    return failed_for_good(
        observed=held.observed,
        generation=held.generation,
        acted_generation=held.acted_generation,
        error_class=held.error_class,
    )


def may_be_loaded(held: Held) -> bool:
    """Whether the engine may have it now.

    What failed for good may not: nothing is on its way, and what the failure left in the engine has to go. Nor may
    what is wanted on disk alone, once it is drained.
    """
    if is_broken(held):
        return False
    if held.desired == Desired.DISK:
        return held.observed in _IN_ENGINE
    return held.desired == Desired.GPU or held.observed != Observed.ABSENT


def to_where(name: str, held: Held, report: NodeReport, now: datetime) -> Observed | None:
    """Where the version ``name`` really is, if the report says that it isn't where it was last seen; else None.

    What an engine has from another path is not the version. An engine that isn't healthy proves nothing.
    """
    if held.state_changed_at + REPORT_LAG > now:
        return None
    if held.observed == Observed.LOADED:
        is_here = not report.engine_healthy or name in report.loaded - report.mismatched
    else:
        is_here = held.observed != Observed.ON_DISK or name in report.on_disk
    if is_here:
        return None
    return Observed.ON_DISK if name in report.on_disk else Observed.ABSENT


def strangers(report: NodeReport, held: Mapping[str, Held], now: datetime) -> Strangers:
    """The names to be alarmed of. What has just changed may be on its way out of the engine: that is no alarm."""
    unknown = (name for name in report.loaded if _is_strange(held.get(name), now))
    return Strangers(_some(unknown), _some(name for name in report.mismatched if name in held))


def new_strangers(now: Strangers, before: Strangers) -> Strangers:
    """Those that were not there before."""
    return Strangers(
        tuple(name for name in now.unknown if name not in before.unknown),
        tuple(name for name in now.mismatched if name not in before.mismatched),
    )


def _is_strange(held: Held | None, now: datetime) -> bool:
    if held is None:
        return True
    is_failure = held.observed == Observed.FAILED
    return not may_be_loaded(held) and not is_failure and held.state_changed_at + REPORT_LAG <= now


def _some(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names)[:MAX_NAMES])
