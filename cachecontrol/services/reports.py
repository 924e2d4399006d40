"""What node agents report: how they are, and how commands ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol import events
from cachecontrol.models import Node, Residency
from cachecontrol.selectors import get_reporting_node, lock_node, residencies_with_relations
from cachecontrol.services import wishes
from cachecontrol.services.places import is_broken
from cachecontrol.states import (
    ENDS,
    OBSERVED_AFTER,
    WORTH_ANOTHER_TRY,
    Desired,
    ErrorClass,
    NodeStatus,
    Observed,
    Outcome,
)
from cachecontrol.transitions import move_node, move_observed, note, once_more
from registry.actors import Actor
from registry.errors import NotFound

# A report may be older than an outcome that overtook it: so long it proves nothing about what changed last.
REPORT_LAG: Final = timedelta(seconds=3)
MAX_PAUSE_S: Final = 60
MAX_MESSAGE: Final = 500
_EXPECTED: Final[dict[Desired, frozenset[Outcome]]] = {
    Desired.GPU: frozenset(Outcome) - {Outcome.EVICTED},
    Desired.ABSENT: frozenset({Outcome.EVICTED, Outcome.FAILED}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """The state of a node: names the engine lists, and names whose files are complete on its disk."""

    boot_id: str
    engine_healthy: bool
    loaded: frozenset[str]
    on_disk: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """How far a command has come, or how it ended. ``timings_ms`` has milliseconds by step."""

    engine_name: str
    generation: int
    outcome: Outcome
    message: str = ""
    error_class: ErrorClass | None = None
    timings_ms: Mapping[str, int] = field(default_factory=dict)


def record_report(*, actor: Actor, report: NodeReport) -> list[str]:
    """Take in a heartbeat and return the names that the engine has loaded and should not.

    What an engine has forgotten, because it was restarted, is asked for again. While it isn't healthy its list proves
    nothing.
    """
    node = _record_heartbeat(actor, report)
    if not report.engine_healthy:
        return []
    residencies = list(residencies_with_relations().filter(node=node))
    for residency in residencies:
        if _to_where(residency, report, timezone.now()) is not None:
            _record_loss(actor, residency, report)
    known = {residency.version.engine_name for residency in residencies if _may_be_loaded(residency)}
    return sorted(report.loaded - known)


def record_outcome(*, actor: Actor, outcome: CommandOutcome) -> Residency:
    """Take in how a command went. Older generations are ignored, and so is what is known already.

    A failure worth another try is tried again later and later; any other waits until somebody wants the version again.

    Raises:
        NotFound: this node was never asked for such a version.

    """
    node = get_reporting_node(actor=actor)
    if outcome.error_class is ErrorClass.PERMANENT:
        _taint_if_loading(actor, node, outcome)
    return _record_outcome(actor, node, outcome)


@transaction.atomic
def _record_heartbeat(actor: Actor, report: NodeReport) -> Node:
    node = lock_node(get_reporting_node(actor=actor))
    news = _news_of(node, report)
    before = {name: getattr(node, name) for name in news}
    if "status" in news:
        move_node(node, was=NodeStatus(node.status), to=NodeStatus.UP)
    node.last_seen_at = timezone.now()
    for name in news:
        setattr(node, name, news[name])
    node.save(update_fields=["last_seen_at", *(name for name in news if name != "status")])
    if news:
        events.node_reported(actor=actor, node=node, before=before, after=news)
    return node


def _news_of(node: Node, report: NodeReport) -> dict[str, Any]:
    """What differs from what is known of the node. A restarted engine has nothing left in it that could be harmful."""
    now: dict[str, Any] = {
        "status": NodeStatus.UP.value,
        "boot_id": report.boot_id,
        "engine_healthy": report.engine_healthy,
        "tainted": node.tainted and report.boot_id == node.boot_id,
    }
    return {name: value for name, value in now.items() if getattr(node, name) != value}


def _to_where(residency: Residency, report: NodeReport, now: datetime) -> Observed | None:
    """Where the version really is, if the report says that it isn't where it was last seen; else None."""
    name = residency.version.engine_name
    here = {Observed.LOADED: report.loaded, Observed.ON_DISK: report.on_disk}.get(Observed(residency.observed))
    if here is None or name in here or residency.state_changed_at + REPORT_LAG > now:
        return None
    return Observed.ON_DISK if name in report.on_disk else Observed.ABSENT


@transaction.atomic
def _record_loss(actor: Actor, residency: Residency, report: NodeReport) -> None:
    locked = residencies_with_relations().select_for_update(of=("self",), no_key=True).filter(pk=residency.pk).first()
    to = None if locked is None else _to_where(locked, report, timezone.now())
    if locked is None or to is None:
        return
    was, generation = Observed(locked.observed), locked.generation
    facts: dict[str, Any] = {"load_ms": None}
    if locked.desired == Desired.GPU and locked.acted_generation == generation:
        facts |= {"attempts": 0, "retry_at": None, **once_more(locked)}
    move_observed(locked, was=was, to=to, **facts)
    events.residency_observed(
        actor=actor, residency=locked, was=was, generation=generation, reason="the node does not list it any more"
    )
    wishes.nudge(locked)


def _may_be_loaded(residency: Residency) -> bool:
    """What failed for good may not: nothing is on its way, and what the failure left in the engine has to go."""
    if is_broken(residency):
        return False
    return residency.desired == Desired.GPU or residency.observed != Observed.ABSENT


@transaction.atomic
def _taint_if_loading(actor: Actor, node: Node, outcome: CommandOutcome) -> None:
    """A load that failed inside the engine may have left something in a slot: a restart is due.

    An engine whose answers can't be trusted at all is not healthy, by its agent's own report.
    """
    locked = lock_node(node)
    was_loading = Residency.objects.filter(
        node=node,
        version__engine_name=outcome.engine_name,
        generation=outcome.generation,
        observed=Observed.LOADING.value,
    ).exists()
    if locked.tainted or not was_loading:
        return
    locked.tainted = True
    locked.save(update_fields=["tainted"])
    events.node_tainted(actor=actor, node=locked, reason=outcome.message[:MAX_MESSAGE])


@transaction.atomic
def _record_outcome(actor: Actor, node: Node, outcome: CommandOutcome) -> Residency:
    locked = (
        residencies_with_relations()
        .select_for_update(of=("self",), no_key=True)
        .filter(node=node, version__engine_name=outcome.engine_name)
        .first()
    )
    if locked is None:
        raise NotFound(_("This node was never asked for this version."), field="engine_name")
    if not _is_news(locked, outcome):
        return locked
    was, to = Observed(locked.observed), OBSERVED_AFTER[outcome.outcome]
    message = outcome.message[:MAX_MESSAGE]
    facts = {"message": message, **(_facts_of_end(locked, outcome) if outcome.outcome in ENDS else {})}
    if was is to:
        note(locked, **facts)
        return locked
    move_observed(locked, was=was, to=to, **facts)
    events.residency_observed(actor=actor, residency=locked, was=was, generation=outcome.generation, reason=message)
    return locked


def _is_news(residency: Residency, outcome: CommandOutcome) -> bool:
    if outcome.generation != residency.generation or outcome.outcome not in _EXPECTED[Desired(residency.desired)]:
        return False
    if outcome.outcome not in ENDS:
        # What an engine holds goes on answering while the node checks it once more.
        return residency.acted_generation < residency.generation and residency.observed != Observed.LOADED
    return residency.acted_generation < residency.generation or residency.observed != OBSERVED_AFTER[outcome.outcome]


def _facts_of_end(residency: Residency, outcome: CommandOutcome) -> dict[str, Any]:
    """The node brought this generation to an end; a failure worth another try begins the next one."""
    facts: dict[str, Any] = {
        "acted_generation": residency.generation,
        "error_class": "",
        "load_ms": outcome.timings_ms.get("load") if outcome.outcome is Outcome.LOADED else None,
        "attempts": 0,
        "retry_at": None,
        "drain_until": None,
    }
    if outcome.outcome is not Outcome.FAILED:
        return facts
    error_class = outcome.error_class or ErrorClass.TRANSIENT
    attempts = residency.attempts + 1
    facts |= {"error_class": error_class.value, "attempts": attempts}
    if error_class in WORTH_ANOTHER_TRY or residency.desired == Desired.ABSENT:
        facts |= {"retry_at": timezone.now() + pause_after(attempts), **once_more(residency)}
    return facts


def pause_after(attempts: int) -> timedelta:
    """How long to wait after so many failed attempts: 1 s, 2 s, 4 s … at most a minute."""
    return timedelta(seconds=min(2 ** min(attempts - 1, 10), MAX_PAUSE_S))
