"""What node agents report of themselves: how they are, and what they hold."""

import logging
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol import events
from cachecontrol.drift import (
    REPORT_LAG,
    TRUST,
    NodeReport,
    Strangers,
    is_overtaken,
    may_be_loaded,
    new_strangers,
    strangers,
    to_where,
)
from cachecontrol.models import Node, Residency
from cachecontrol.policies import active_policy
from cachecontrol.selectors import get_reporting_node, lock_node, residencies_with_relations
from cachecontrol.services import wishes
from cachecontrol.services.disks import expendable_on, guaranteed_on
from cachecontrol.services.evictions import REMOTE, record_eviction
from cachecontrol.services.lifecycle import end_recycle_if_over, restart_wanted
from cachecontrol.services.planning.soon import replan_soon
from cachecontrol.states import Desired, EvictionReason, NodeStatus, Observed, Tier
from cachecontrol.transitions import move_node, move_observed, once_more
from registry.actors import Actor

logger = logging.getLogger(__name__)

# The agent's word for files that nothing used for long; its other one is "pressure".
_IDLE = "ttl"
# What decides whether a plan may rely on a node.
_PLANNED_BY = frozenset({"status", "engine_healthy", "tainted", "poisoned"})
_FORGOTTEN_WITH_BOOT = frozenset({"status", "boot_id", "engine_healthy"})
_MARKS = ("tainted", "poisoned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a node is told.

    Attributes:
        unknown: names to take out of the engine.
        recycle: the boot id of the engine's life to end by a restart, if any.
        resend: an "unchanged" that nothing can be made of: the next report has to list everything.
        limits: what the policy sets for the node's disk and downloads, by name.

    """

    unknown: list[str] = field(default_factory=list)
    recycle: str | None = None
    resend: bool = False
    limits: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Row:
    """A residency as far as a report is compared with it."""

    pk: int
    desired: str
    observed: str
    generation: int
    acted_generation: int
    error_class: str
    state_changed_at: datetime


def record_report(*, actor: Actor, report: NodeReport) -> Answer:
    """Take in a heartbeat.

    What an engine has forgotten, because it was restarted, is asked for again, and so is what it has from a wrong path.
    What the node dropped from its disk by itself is not wanted there any more. A report that a newer one overtook
    changes nothing: it would turn back the engine's life, and with it what is known to be loaded.
    """
    known = get_reporting_node(actor=actor)
    if is_overtaken(report, known.reported_at):
        return _overtaken(known)
    held = {} if report.unchanged else _held(known)
    # First: once the engine counts as well, gateways send to whatever counts as loaded.
    _record_absences(actor, report, held)
    node, news = _record_heartbeat(actor, report, held)
    if node is None:
        return _overtaken(known)
    if report.tiers is not None:
        _record_tiers(node, report.tiers)
    return Answer(
        unknown=_to_unload(report, held),
        recycle=restart_wanted(node),
        resend=report.unchanged and _can_not_be_used(known, news),
        limits=_limits(node, report),
    )


def _limits(node: Node, report: NodeReport) -> dict[str, Any]:
    """What the policy sets; what files may go and may not changes with what is there, and is told with that alone."""
    policy = active_policy(node)
    limits: dict[str, Any] = dict(policy.node_limits(node.disk_bytes))
    if report.unchanged:
        return limits
    guaranteed = sorted(guaranteed_on(node, policy).values())
    return limits | {"guaranteed": guaranteed, "expendable": expendable_on(node, policy)}


def _overtaken(node: Node) -> Answer:
    """Nothing to do now; the next report lists everything, since its agent takes this one for accepted."""
    return Answer(resend=True, limits=active_policy(node).node_limits(node.disk_bytes))


def _held(node: Node) -> dict[str, _Row]:
    """What is known of the node, by engine name; only what is looked at of each, since there may be thousands."""
    names = [column.name for column in fields(_Row)]
    found = Residency.objects.filter(node=node).values_list("version__engine_name", *names)
    return {name: _Row(*row) for name, *row in found}


def _to_unload(report: NodeReport, held: dict[str, _Row]) -> list[str]:
    if not report.engine_healthy:
        return []
    right = {name for name in report.loaded - report.mismatched if name in held and may_be_loaded(held[name])}
    return sorted(report.loaded - right)


def _can_not_be_used(node: Node, news: dict[str, Any]) -> bool:
    """Whether there may be something to find in a full report, so that "unchanged" is not enough.

    ``node`` is as it was before the report.
    """
    now = timezone.now()
    if node.full_report_at is None or node.full_report_at + TRUST < now:
        return True
    if node.drift or news.keys() & _FORGOTTEN_WITH_BOOT:
        return True
    since = node.full_report_at - REPORT_LAG
    changed = Residency.objects.filter(node=node, state_changed_at__gt=since, state_changed_at__lte=now - REPORT_LAG)
    return changed.exists()


@transaction.atomic
def _record_heartbeat(actor: Actor, report: NodeReport, held: dict[str, _Row]) -> tuple[Node | None, dict[str, Any]]:
    """The node and what is news of it; None when another report overtook this one meanwhile."""
    node = lock_node(get_reporting_node(actor=actor))
    if is_overtaken(report, node.reported_at):
        return None, {}
    news = _news_of(node, report)
    before = {name: getattr(node, name) for name in news}
    if "status" in news:
        move_node(node, was=NodeStatus(node.status), to=NodeStatus.UP)
    facts = {name: value for name, value in news.items() if name != "status"} | _facts_of(node, report)
    facts |= {f"{mark}_at": facts["last_seen_at"] if news[mark] else None for mark in _MARKS if mark in news}
    alarm = Strangers()
    if report.engine_healthy and not report.unchanged:
        alarm = _drift_of(node, report, held, facts)
    for name, value in facts.items():
        setattr(node, name, value)
    node.save(update_fields=list(facts))
    if news:
        events.node_reported(actor=actor, node=node, before=before, after=news)
    if news.keys() & _PLANNED_BY:
        replan_soon(node.base_revision.digest)
    _raise_alarm(actor, node, alarm)
    end_recycle_if_over(actor=actor, node=node)
    return node, news


def _news_of(node: Node, report: NodeReport) -> dict[str, Any]:
    """What differs from what is known of the node. A restarted engine has nothing left in it that could be harmful."""
    boot_id = report.boot_id or node.boot_id
    tainted = report.tainted or (node.tainted and boot_id == node.boot_id)
    is_unsound = tainted or report.poisoned
    now: dict[str, Any] = {
        "status": NodeStatus.UP.value,
        "boot_id": boot_id,
        "engine_healthy": report.engine_healthy,
        "tainted": tainted,
        "poisoned": report.poisoned,
        "restartable": report.restartable,
        "stuck": node.stuck and is_unsound and not report.restartable,
    }
    return {name: value for name, value in now.items() if getattr(node, name) != value}


def _facts_of(node: Node, report: NodeReport) -> dict[str, Any]:
    """What is no news, but kept. What a report doesn't say of the disk stays as it was."""
    now = timezone.now()
    sick_since = None if report.engine_healthy else node.engine_sick_since or now
    disk = {"disk_used_bytes": report.disk_used_bytes, "disk_free_bytes": report.disk_free_bytes}
    return {
        "last_seen_at": now,
        "reported_at": report.sent_at,
        "engine_sick_since": sick_since,
        **{name: value for name, value in disk.items() if value is not None},
    }


def _drift_of(node: Node, report: NodeReport, held: dict[str, _Row], facts: dict[str, Any]) -> Strangers:
    """What is newly wrong in the engine, by a report that lists everything; and what to keep of it, into ``facts``."""
    found = strangers(report, held, timezone.now())
    is_same_life = facts.get("boot_id", node.boot_id) == node.boot_id
    before = Strangers(**{kind: tuple(names) for kind, names in node.drift.items()}) if is_same_life else Strangers()
    alarm = new_strangers(found, before)
    facts["full_report_at"] = timezone.now()
    kept = {kind: list(names) for kind, names in asdict(found).items() if names}
    if kept != node.drift:
        facts["drift"] = kept
    if alarm.mismatched:
        facts["mismatches"] = node.mismatches + len(alarm.mismatched)
    return alarm


def _raise_alarm(actor: Actor, node: Node, alarm: Strangers) -> None:
    if alarm == Strangers():
        return
    logger.error("the engine of node %s has what nobody asked for: %s", node, alarm)
    events.node_drifted(actor=actor, node=node, unknown=list(alarm.unknown), mismatched=list(alarm.mismatched))


def _record_tiers(node: Node, tiers: dict[str, Tier]) -> None:
    """What the engine itself says of where each name is: no estimate."""
    for tier in (Tier.GPU, Tier.CPU):
        names = [name for name, where in tiers.items() if where is tier]
        loaded = Residency.objects.filter(node=node, version__engine_name__in=names, observed=Observed.LOADED.value)
        loaded.exclude(tier=tier.value, tier_is_estimate=False).update(tier=tier.value, tier_is_estimate=False)


def _record_absences(actor: Actor, report: NodeReport, held: dict[str, _Row]) -> None:
    now = timezone.now()
    for name, row in held.items():
        if to_where(name, row, report, now) is not None:
            _record_absence(actor, row.pk, report)


@transaction.atomic
def _record_absence(actor: Actor, residency_id: int, report: NodeReport) -> None:
    """The version is not where it was last seen. What is wanted there is asked for again, unless it was dropped."""
    locked = residencies_with_relations().select_for_update(of=("self",), no_key=True).filter(pk=residency_id).first()
    name = "" if locked is None else locked.version.engine_name
    to = None if locked is None else to_where(name, locked, report, timezone.now())
    if locked is None or to is None:
        return
    was, reason = Observed(locked.observed), _why_absent(name, report)
    if name in report.dropped and locked.desired == Desired.DISK:
        cause = EvictionReason.TTL if report.dropped[name] == _IDLE else EvictionReason.PRESSURE
        record_eviction(residency=locked, to=REMOTE, reason=cause)
        wishes.release(actor=actor, residency=locked, reason=reason)
    generation = locked.generation
    move_observed(locked, was=was, to=to, load_ms=None, **_asked_again(locked))
    events.residency_observed(actor=actor, residency=locked, was=was, generation=generation, reason=reason)
    wishes.nudge(locked)


def _why_absent(name: str, report: NodeReport) -> str:
    if name in report.mismatched:
        return _("the engine has it from another path")
    if name in report.dropped:
        return _("the node dropped it: %(reason)s") % {"reason": report.dropped[name]}
    return _("the node does not list it any more")


def _asked_again(residency: Residency) -> dict[str, Any]:
    if residency.desired == Desired.ABSENT or residency.acted_generation != residency.generation:
        return {}
    return {"attempts": 0, "retry_at": None, **once_more(residency)}
