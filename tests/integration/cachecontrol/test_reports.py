"""Heartbeats and outcomes of node agents."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cachecontrol import events
from cachecontrol.drift import NodeReport
from cachecontrol.models import Node, Residency
from cachecontrol.services.outcomes import CommandOutcome, record_outcome
from cachecontrol.services.reports import record_report
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import ErrorClass, Outcome
from registry.errors import NotFound, PermissionDenied
from registry.models import AuditRecord, Version
from registry.states import Role, Scope
from tests.factories.cachecontrol import backdate, gateway_actor, make_node, node_actor, register, report, tell
from tests.factories.registry import make_actor, make_member, make_person, make_tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def residency(node: Node, version: Version) -> Residency:
    return warm_version(actor=make_actor(), node=node, version=version)


@pytest.fixture
def loaded(node: Node, version: Version, residency: Residency) -> Residency:
    tell(node, version, Outcome.LOADED)
    backdate(residency, 60, "state_changed_at")
    return residency


def facts_of(residency: Residency) -> tuple[str, str, int, int]:
    residency.refresh_from_db()
    return residency.desired, residency.observed, residency.generation, residency.acted_generation


def observations(residency: Residency) -> list[tuple[str, str]]:
    records = AuditRecord.objects.filter(
        action="node:residency:observe", object__id=str(residency.pk), chain=residency.version.adapter.tenant.name
    ).order_by("seq")
    pairs = ((record.before or {}, record.after or {}) for record in records)
    return [(before["observed"], after["observed"]) for before, after in pairs]


def platform_records() -> int:
    return AuditRecord.objects.filter(chain="platform").count()


def test_a_first_report_brings_the_node_up() -> None:
    node = register().node
    report(node, boot_id="boot-7")
    node.refresh_from_db()
    assert (node.status, node.boot_id, node.engine_healthy) == ("up", "boot-7", True)
    record = AuditRecord.objects.get(action="platform:node:report")
    assert record.before == {"status": "new", "boot_id": "", "engine_healthy": False}
    assert record.actor["kind"] == "node"


def test_heartbeats_without_news_are_not_recorded_but_seen(node: Node) -> None:
    Node.objects.filter(pk=node.pk).update(last_seen_at=timezone.now() - timedelta(minutes=1))
    before = platform_records()
    report(node)
    report(node)
    node.refresh_from_db()
    assert platform_records() == before
    assert node.last_seen_at is not None
    assert node.last_seen_at > timezone.now() - timedelta(seconds=10)


def test_steps_and_end_are_observed_with_one_record_each(node: Node, version: Version, residency: Residency) -> None:
    steps = [Outcome.FETCHING, Outcome.ON_DISK, Outcome.LOADING]
    for step in steps:
        tell(node, version, step)
    tell(node, version, Outcome.LOADED, timings_ms={"fetch": 70, "load": 15})
    residency.refresh_from_db()
    assert facts_of(residency) == ("gpu", "loaded", 1, 1)
    assert residency.load_ms == 15
    places = ["absent", "fetching", "on_disk", "loading", "loaded"]
    assert observations(residency) == list(itertools.pairwise(places))


def test_an_outcome_told_again_changes_nothing(node: Node, version: Version, loaded: Residency) -> None:
    before = (facts_of(loaded), observations(loaded))
    for outcome in (Outcome.LOADED, Outcome.LOADING, Outcome.FETCHING):
        tell(node, version, outcome)
    assert (facts_of(loaded), observations(loaded)) == before


def test_outcomes_of_other_generations_are_ignored(node: Node, version: Version, loaded: Residency) -> None:
    evict_version(actor=make_actor(), node=node, version=version)
    for generation in (1, 3):
        tell(node, version, Outcome.EVICTED, generation=generation)
        tell(node, version, Outcome.FAILED, generation=generation)
    assert facts_of(loaded) == ("absent", "loaded", 2, 1)
    tell(node, version, Outcome.EVICTED)
    assert facts_of(loaded) == ("absent", "absent", 2, 2)


def test_an_outcome_that_was_not_asked_for_is_ignored(node: Node, version: Version, loaded: Residency) -> None:
    tell(node, version, Outcome.EVICTED)
    assert facts_of(loaded) == ("gpu", "loaded", 1, 1)
    evict_version(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.LOADED)
    assert facts_of(loaded) == ("absent", "loaded", 2, 1)


def test_a_load_that_fails_after_all_and_one_that_works_after_all_are_believed(
    node: Node, version: Version, loaded: Residency
) -> None:
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT, message="the probe failed")
    assert facts_of(loaded) == ("gpu", "failed", 1, 1)
    tell(node, version, Outcome.LOADED)
    assert facts_of(loaded) == ("gpu", "loaded", 1, 1)
    loaded.refresh_from_db()
    assert (loaded.message, loaded.error_class) == ("", "")


def test_a_loaded_version_goes_on_answering_while_the_node_checks_it_again(
    node: Node, version: Version, loaded: Residency
) -> None:
    evict_version(actor=make_actor(), node=node, version=version)
    warm_version(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.FETCHING)
    assert facts_of(loaded) == ("gpu", "loaded", 3, 1)
    tell(node, version, Outcome.LOADED)
    assert facts_of(loaded) == ("gpu", "loaded", 3, 3)


@pytest.mark.parametrize("error_class", [ErrorClass.TRANSIENT, ErrorClass.CAPACITY, None])
def test_a_failure_worth_another_try_is_the_next_generation_later(
    node: Node, version: Version, residency: Residency, error_class: ErrorClass | None
) -> None:
    pauses = []
    for attempt in range(1, 9):
        before = timezone.now()
        tell(node, version, Outcome.FAILED, error_class=error_class, message="the store is away")
        residency.refresh_from_db()
        assert (residency.observed, residency.generation, residency.attempts) == ("failed", attempt + 1, attempt)
        assert residency.retry_at is not None
        pauses.append((residency.retry_at - before).total_seconds())
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60], abs=0.9)
    assert residency.message == "the store is away"
    assert len(observations(residency)) == 1


@pytest.mark.parametrize("error_class", [ErrorClass.PERMANENT, ErrorClass.REFUSED])
def test_any_other_failure_stays(node: Node, version: Version, residency: Residency, error_class: ErrorClass) -> None:
    tell(node, version, Outcome.FAILED, error_class=error_class)
    assert facts_of(residency) == ("gpu", "failed", 1, 1)
    assert residency.retry_at is None


def test_a_failed_eviction_is_always_tried_again(node: Node, version: Version, loaded: Residency) -> None:
    evict_version(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT)
    assert facts_of(loaded) == ("absent", "failed", 3, 2)
    assert loaded.retry_at is not None


def test_a_load_that_failed_inside_the_engine_taints_the_node_until_its_restart(
    node: Node, version: Version, residency: Residency
) -> None:
    tell(node, version, Outcome.LOADING)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT, message="shape mismatch")
    node.refresh_from_db()
    assert node.tainted
    assert AuditRecord.objects.get(action="platform:node:taint").reason == "shape mismatch"
    report(node)
    node.refresh_from_db()
    assert node.tainted
    report(node, boot_id="boot-2")
    node.refresh_from_db()
    assert not node.tainted


def test_a_failure_before_the_engine_was_touched_does_not_taint(
    node: Node, version: Version, residency: Residency
) -> None:
    tell(node, version, Outcome.FETCHING)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT)
    node.refresh_from_db()
    assert not node.tainted


@pytest.mark.parametrize(("on_disk", "place"), [(True, "on_disk"), (False, "absent")])
def test_what_a_restarted_engine_forgot_is_asked_for_again(
    node: Node, version: Version, loaded: Residency, on_disk: bool, place: str
) -> None:
    names = (version.engine_name,) if on_disk else ()
    assert report(node, boot_id="boot-2", on_disk=names) == []
    assert facts_of(loaded) == ("gpu", place, 2, 1)
    assert observations(loaded)[-1] == ("loaded", place)
    report(node, boot_id="boot-2", on_disk=names)
    assert facts_of(loaded) == ("gpu", place, 2, 1)


def test_a_name_the_engine_still_lists_stays_loaded(node: Node, version: Version, loaded: Residency) -> None:
    report(node, boot_id="boot-2", loaded=(version.engine_name,))
    assert facts_of(loaded) == ("gpu", "loaded", 1, 1)


def test_a_report_that_an_outcome_overtook_proves_nothing(node: Node, version: Version, residency: Residency) -> None:
    tell(node, version, Outcome.LOADED)
    report(node)
    assert facts_of(residency) == ("gpu", "loaded", 1, 1)


def test_an_engine_that_is_not_healthy_proves_nothing(node: Node, version: Version, loaded: Residency) -> None:
    assert report(node, engine_healthy=False, loaded=("lk-stranger",)) == []
    assert facts_of(loaded) == ("gpu", "loaded", 1, 1)
    node.refresh_from_db()
    assert not node.engine_healthy


def test_an_evicted_version_that_is_gone_from_the_engine_is_not_asked_for_again(
    node: Node, version: Version, loaded: Residency
) -> None:
    evict_version(actor=make_actor(), node=node, version=version)
    report(node, on_disk=(version.engine_name,))
    assert facts_of(loaded) == ("absent", "on_disk", 2, 1)


def test_names_that_nobody_asked_for_are_to_be_unloaded(node: Node, version: Version, loaded: Residency) -> None:
    names = (version.engine_name, "lk-stranger")
    assert report(node, loaded=names) == ["lk-stranger"]
    evict_version(actor=make_actor(), node=node, version=version)
    assert report(node, loaded=names) == ["lk-stranger"]
    tell(node, version, Outcome.EVICTED)
    assert report(node, loaded=names) == [version.engine_name, "lk-stranger"]


def test_another_nodes_versions_are_unknown_here(version: Version, loaded: Residency) -> None:
    other = make_node(base_revision=version.base_revision)
    assert report(other, loaded=(version.engine_name,)) == [version.engine_name]
    with pytest.raises(NotFound):
        told = CommandOutcome(engine_name=version.engine_name, generation=1, outcome=Outcome.FAILED)
        record_outcome(actor=node_actor(other), outcome=told)
    assert facts_of(loaded) == ("gpu", "loaded", 1, 1)


def test_only_a_nodes_own_token_reports(version: Version) -> None:
    state = NodeReport(boot_id="x", engine_healthy=True, loaded=frozenset(), on_disk=frozenset())
    told = CommandOutcome(engine_name=version.engine_name, generation=1, outcome=Outcome.LOADED)
    everything_else = set(Scope) - {Scope.NODE}
    admin = make_actor(make_person(is_platform_admin=True), scopes=everything_else)
    callers: list[tuple[Any, type[Exception]]] = [
        (admin, PermissionDenied),
        (gateway_actor(), PermissionDenied),
        (make_member(make_tenant(), *Role), NotFound),
    ]
    for actor, error in callers:
        with pytest.raises(error):
            record_report(actor=actor, report=state)
        with pytest.raises(error):
            record_outcome(actor=actor, outcome=told)


def test_a_failure_in_an_earlier_life_of_the_engine_does_not_taint_this_one(
    node: Node, version: Version, residency: Residency
) -> None:
    tell(node, version, Outcome.LOADING)
    report(node, boot_id="boot-2")
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT, boot_id="boot-1")
    node.refresh_from_db()
    assert not node.tainted
    assert facts_of(residency)[1] == "failed"


def test_a_failure_in_a_life_of_the_engine_that_nobody_has_reported_yet_taints_with_the_first_report_of_it(
    node: Node, version: Version, residency: Residency
) -> None:
    tell(node, version, Outcome.LOADING)
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT, boot_id="boot-2")
    report(node, boot_id="boot-2", tainted=True)
    node.refresh_from_db()
    assert (node.boot_id, node.tainted) == ("boot-2", True)
    report(node, boot_id="boot-3")
    node.refresh_from_db()
    assert not node.tainted


def test_an_agent_that_claims_impossible_transfers_is_still_heard(
    node: Node, version: Version, residency: Residency
) -> None:
    Residency.objects.update(fetched_bytes=2**63 - 1)
    tell(node, version, Outcome.LOADED, fetched_bytes=2**53 - 1, timings_ms={"fetch": 1})
    residency.refresh_from_db()
    assert (residency.observed, residency.fetched_bytes) == ("loaded", 2**63 - 1)


def test_what_a_restarted_engine_forgot_is_gone_before_the_engine_counts_as_well(
    node: Node, loaded: Residency, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that sees an engine well and a version loaded sends to it, and some engines answer as the base then."""
    seen: list[str] = []

    def watched(**facts: Any) -> None:
        seen.append(facts_of(loaded)[1])

    Node.objects.filter(pk=node.pk).update(engine_healthy=False)
    monkeypatch.setattr(events, "node_reported", watched)
    report(node, boot_id="boot-2")
    assert seen == ["absent"]
