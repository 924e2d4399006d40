"""How the commands to a node went, as its agent tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol import events
from cachecontrol.models import Node, Residency
from cachecontrol.selectors import get_reporting_node, lock_node, residencies_with_relations
from cachecontrol.services.loads.failures import forget_failures, note_failure
from cachecontrol.services.loads.queue import nudge_queue
from cachecontrol.services.planning.soon import replan_soon
from cachecontrol.states import (
    ENDS,
    EXPECTED,
    OBSERVED_AFTER,
    WORTH_ANOTHER_TRY,
    Desired,
    ErrorClass,
    Observed,
    Outcome,
)
from cachecontrol.transitions import move_observed, note, once_more
from registry.actors import Actor
from registry.errors import NotFound

MAX_PAUSE_S: Final = 60
MAX_MESSAGE: Final = 500
# As many as the column holds: what an agent claims is only claimed.
_MOST_BYTES: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """How far a command has come, or how it ended.

    ``timings_ms`` has milliseconds by step (fetch, verify, wait, load, probe); ``fetched_bytes`` were transferred.
    ``code`` is the agent's own word for what went wrong. ``boot_id`` is the engine's life in which that was; empty
    where the agent doesn't say.
    """

    engine_name: str
    generation: int
    outcome: Outcome
    message: str = ""
    error_class: ErrorClass | None = None
    code: str = ""
    timings_ms: Mapping[str, int] = field(default_factory=dict)
    fetched_bytes: int = 0
    boot_id: str = ""


def record_outcome(*, actor: Actor, outcome: CommandOutcome) -> Residency:
    """Take in how a command went. Older generations are ignored, and so is what is known already.

    A failure worth another try is tried again later and later; any other waits until somebody wants the version again.

    Raises:
        NotFound: this node was never asked for such a version.

    """
    node = get_reporting_node(actor=actor)
    if outcome.error_class is ErrorClass.PERMANENT:
        _taint_if_loading(actor, node, outcome)
    residency = _record_outcome(actor, node, outcome)
    if outcome.outcome in (Outcome.LOADED, Outcome.EVICTED, Outcome.FAILED):
        nudge_queue(residency)
    return residency


@transaction.atomic
def _taint_if_loading(actor: Actor, node: Node, outcome: CommandOutcome) -> None:
    """A load that failed inside the engine may have left something in a slot: a restart is due.

    An engine whose answers can't be trusted at all is not healthy, by its agent's own report. What an earlier life of
    the engine failed at, and is told late, is no reason to end this one.
    """
    locked = lock_node(node)
    if outcome.boot_id not in ("", locked.boot_id):
        return
    was_loading = Residency.objects.filter(
        node=node,
        version__engine_name=outcome.engine_name,
        generation=outcome.generation,
        observed=Observed.LOADING.value,
    ).exists()
    if locked.tainted or not was_loading:
        return
    locked.tainted, locked.tainted_at = True, timezone.now()
    locked.save(update_fields=["tainted", "tainted_at"])
    events.node_tainted(actor=actor, node=locked, reason=outcome.message[:MAX_MESSAGE])
    replan_soon(locked.base_revision.digest)


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
    _remember(locked, outcome)
    was, to = Observed(locked.observed), OBSERVED_AFTER[outcome.outcome]
    message = outcome.message[:MAX_MESSAGE]
    facts = {"message": message, **(_facts_of_end(locked, outcome) if _is_end(locked, outcome) else {})}
    if was is to:
        note(locked, **facts)
        return locked
    move_observed(locked, was=was, to=to, **facts)
    events.residency_observed(actor=actor, residency=locked, was=was, generation=outcome.generation, reason=message)
    return locked


def _remember(residency: Residency, outcome: CommandOutcome) -> None:
    """Whether the version can be loaded at all, for those that would place it elsewhere."""
    if outcome.outcome is Outcome.LOADED:
        forget_failures(residency.version)
    elif outcome.error_class is ErrorClass.PERMANENT and residency.desired == Desired.GPU:
        note_failure(residency.version, outcome.message[:MAX_MESSAGE])


def _is_end(residency: Residency, outcome: CommandOutcome) -> bool:
    return outcome.outcome in ENDS[Desired(residency.desired)]


def _is_news(residency: Residency, outcome: CommandOutcome) -> bool:
    if outcome.generation != residency.generation or outcome.outcome not in EXPECTED[Desired(residency.desired)]:
        return False
    if not _is_end(residency, outcome):
        # What an engine holds goes on answering while the node checks it once more.
        return residency.acted_generation < residency.generation and residency.observed != Observed.LOADED
    return residency.acted_generation < residency.generation or residency.observed != OBSERVED_AFTER[outcome.outcome]


def _facts_of_end(residency: Residency, outcome: CommandOutcome) -> dict[str, Any]:
    """The node brought this generation to an end; a failure worth another try begins the next one."""
    facts: dict[str, Any] = {
        "acted_generation": residency.generation,
        "error_class": "",
        "error_code": "",
        "load_ms": outcome.timings_ms.get("load") if outcome.outcome is Outcome.LOADED else None,
        "attempts": 0,
        "retry_at": None,
        "drain_until": None,
        **_facts_of_transfer(residency, outcome),
    }
    if outcome.outcome is Outcome.EVICTED and residency.desired == Desired.DISK:
        return facts | once_more(residency)
    if outcome.outcome is not Outcome.FAILED:
        return facts
    error_class = outcome.error_class or ErrorClass.TRANSIENT
    attempts = residency.attempts + 1
    facts |= {"error_class": error_class.value, "error_code": outcome.code, "attempts": attempts}
    if error_class in WORTH_ANOTHER_TRY or _is_leaving(residency):
        facts |= {"retry_at": timezone.now() + pause_after(attempts), **once_more(residency)}
    return facts


def _is_leaving(residency: Residency) -> bool:
    """Whether it is to leave the engine: that is tried until it is done."""
    if residency.desired == Desired.DISK:
        return residency.observed == Observed.DRAINING
    return residency.desired == Desired.ABSENT


def _facts_of_transfer(residency: Residency, outcome: CommandOutcome) -> dict[str, Any]:
    """What was transferred, and how long that took; what was on the node already says nothing about it."""
    if not outcome.fetched_bytes:
        return {}
    return {
        "fetched_bytes": min(residency.fetched_bytes + outcome.fetched_bytes, _MOST_BYTES),
        "fetch_ms": outcome.timings_ms.get("fetch", residency.fetch_ms),
    }


def pause_after(attempts: int) -> timedelta:
    """How long to wait after so many failed attempts: 1 s, 2 s, 4 s … at most a minute."""
    return timedelta(seconds=min(2 ** min(attempts - 1, 10), MAX_PAUSE_S))
