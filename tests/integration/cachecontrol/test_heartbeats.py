"""What a heartbeat says beyond what is there: drift, tiers, dropped files, "unchanged"; and what its node is told."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from cachecontrol.models import Eviction, Node, Residency
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.services.wishes import want_on_disk
from cachecontrol.states import Desired, ErrorClass, Outcome, Tier
from registry.models import AuditRecord, Version
from tests.factories.cachecontrol import backdate, beat, report, tell
from tests.factories.registry import make_actor, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def residency(node: Node, version: Version) -> Residency:
    return warm_version(actor=make_actor(), node=node, version=version)


@pytest.fixture
def loaded(node: Node, version: Version, residency: Residency) -> Residency:
    tell(node, version, Outcome.LOADED)
    backdate(residency, 60, "state_changed_at")
    return residency


@pytest.fixture
def kept(node: Node, version: Version) -> Residency:
    residency = want_on_disk(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.ON_DISK)
    backdate(residency, 60, "state_changed_at")
    return residency


def facts_of(residency: Residency) -> tuple[str, str, int, int]:
    residency.refresh_from_db()
    return residency.desired, residency.observed, residency.generation, residency.acted_generation


def where(residency: Residency) -> tuple[str, bool]:
    residency.refresh_from_db()
    return residency.tier, residency.tier_is_estimate


def drifts() -> list[dict[str, Any]]:
    records = AuditRecord.objects.filter(action="platform:node:drift").order_by("seq")
    return [record.after or {} for record in records]


def test_files_alone_are_on_disk_in_the_end_with_what_they_cost(node: Node, version: Version) -> None:
    residency = want_on_disk(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.FETCHING)
    assert facts_of(residency) == ("disk", "fetching", 1, 0)
    tell(node, version, Outcome.LOADED)
    assert facts_of(residency) == ("disk", "fetching", 1, 0)
    tell(node, version, Outcome.ON_DISK, timings_ms={"fetch": 70}, fetched_bytes=1000)
    assert facts_of(residency) == ("disk", "on_disk", 1, 1)
    assert (residency.fetch_ms, residency.fetched_bytes, where(residency)) == (70, 1000, ("disk", False))
    warm_version(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.LOADED, timings_ms={"load": 9})
    residency.refresh_from_db()
    assert (residency.fetch_ms, residency.fetched_bytes, residency.load_ms) == (70, 1000, 9)


def test_a_demotion_ends_on_disk_or_is_fetched_when_the_files_are_gone(
    node: Node, version: Version, loaded: Residency
) -> None:
    evict_version(actor=make_actor(), node=node, version=version, to=Desired.DISK)
    tell(node, version, Outcome.EVICTED)
    assert facts_of(loaded) == ("disk", "absent", 3, 2)
    tell(node, version, Outcome.ON_DISK)
    assert facts_of(loaded) == ("disk", "on_disk", 3, 3)


def test_an_unload_that_failed_on_the_way_to_the_disk_is_always_tried_again(
    node: Node, version: Version, loaded: Residency
) -> None:
    evict_version(actor=make_actor(), node=node, version=version, to=Desired.DISK)
    Residency.objects.filter(pk=loaded.pk).update(observed="draining")
    tell(node, version, Outcome.FAILED, error_class=ErrorClass.PERMANENT)
    assert facts_of(loaded) == ("disk", "failed", 3, 2)
    assert report(node, loaded=(version.engine_name,)) == [version.engine_name]


def test_files_that_are_gone_from_the_disk_are_asked_for_again(node: Node, version: Version, kept: Residency) -> None:
    report(node, on_disk=(version.engine_name,))
    assert facts_of(kept) == ("disk", "on_disk", 1, 1)
    report(node, engine_healthy=False)
    assert facts_of(kept) == ("disk", "absent", 2, 1)


@pytest.mark.parametrize("why", ["ttl", "pressure"])
def test_what_a_node_dropped_by_itself_is_not_wanted_there_any_more(
    node: Node, version: Version, kept: Residency, why: str
) -> None:
    report(node, dropped={version.engine_name: why})
    assert facts_of(kept) == ("absent", "absent", 2, 1)
    row = Eviction.objects.get()
    assert (row.tier, row.to_tier, row.reason) == ("disk", "remote", why)
    assert why in AuditRecord.objects.get(action="node:residency:release").reason


def test_what_is_wanted_on_disk_alone_is_taken_out_of_the_engine(node: Node, version: Version, kept: Residency) -> None:
    names = (version.engine_name,)
    assert report(node, loaded=names, on_disk=names) == [version.engine_name]
    assert facts_of(kept) == ("disk", "on_disk", 1, 1)


def test_strangers_are_an_alarm_once_per_name_and_life_of_the_engine(node: Node, caplog: Any) -> None:
    for names in (("lk-a",), ("lk-a",), ("lk-a", "by-hand")):
        assert report(node, loaded=names) == sorted(names)
    node.refresh_from_db()
    assert node.drift == {"unknown": ["by-hand", "lk-a"]}
    assert [drift["unknown"] for drift in drifts()] == [["lk-a"], ["by-hand"]]
    report(node, loaded=("lk-a",), boot_id="boot-2")
    assert [drift["unknown"] for drift in drifts()][2:] == [["lk-a"]]
    assert caplog.text.count("nobody asked for") == 3


def test_a_wrong_path_is_counted_and_the_version_loaded_anew(node: Node, version: Version, loaded: Residency) -> None:
    names = (version.engine_name,)
    for _time in range(2):
        told = report(node, loaded=names, on_disk=names, mismatched=frozenset(names))
        assert told == [version.engine_name]
    assert facts_of(loaded) == ("gpu", "on_disk", 2, 1)
    node.refresh_from_db()
    assert (node.mismatches, len(drifts())) == (1, 1)
    reasons = AuditRecord.objects.filter(action="node:residency:observe").order_by("seq")
    assert "another path" in reasons[len(reasons) - 1].reason


def test_a_tier_is_an_estimate_until_the_engine_tells(node: Node, version: Version, loaded: Residency) -> None:
    assert where(loaded) == ("gpu", True)
    beat(node, unchanged=True, tiers={version.engine_name: Tier.CPU})
    assert where(loaded) == ("cpu", False)
    evict_version(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.EVICTED)
    assert where(loaded) == ("", False)


def test_an_unchanged_report_is_enough_while_nothing_else_has_changed(
    node: Node, version: Version, loaded: Residency
) -> None:
    assert beat(node, unchanged=True).resend
    beat(node, loaded=(version.engine_name,))
    told = beat(node, unchanged=True)
    assert (told.resend, told.unknown, facts_of(loaded)) == (False, [], ("gpu", "loaded", 1, 1))
    assert beat(node, unchanged=True, boot_id="boot-2").resend


def test_an_unchanged_report_is_not_enough_after_a_change_that_it_may_disprove(
    node: Node, version: Version, loaded: Residency
) -> None:
    beat(node, loaded=(version.engine_name,))
    other = make_version(adapter=version.adapter)
    changed = warm_version(actor=make_actor(), node=node, version=other)
    tell(node, other, Outcome.LOADED)
    assert not beat(node, unchanged=True).resend
    Node.objects.filter(pk=node.pk).update(full_report_at=timezone.now() - timedelta(seconds=30))
    backdate(changed, 20, "state_changed_at")
    assert beat(node, unchanged=True).resend
    report(node, loaded=(version.engine_name,))
    assert facts_of(changed)[1] == "absent"


def test_an_unchanged_report_is_not_enough_while_strangers_are_in_the_engine(node: Node) -> None:
    report(node, loaded=("by-hand",))
    assert beat(node, unchanged=True).resend
    report(node)
    assert not beat(node, unchanged=True).resend


def test_the_disk_is_kept_in_mind_and_its_limits_are_told(node: Node) -> None:
    limits = beat(node, disk_used_bytes=7, disk_free_bytes=11).limits
    beat(node)
    node.refresh_from_db()
    assert (node.disk_used_bytes, node.disk_free_bytes) == (7, 11)
    assert limits["disk_bytes"] <= node.disk_bytes
    assert 0 < limits["low_water"] < limits["high_water"] <= 1


def test_an_engine_that_is_away_keeps_its_name_for_its_life(node: Node) -> None:
    Node.objects.filter(pk=node.pk).update(tainted=True)
    report(node, boot_id="", engine_healthy=False)
    node.refresh_from_db()
    assert (node.boot_id, node.tainted) == ("boot-1", True)


NOON = datetime(2026, 7, 4, 12, tzinfo=UTC)


def test_a_report_that_was_overtaken_turns_nothing_back(node: Node, version: Version, loaded: Residency) -> None:
    beat(node, boot_id="boot-2", loaded=(version.engine_name,), sent_at=NOON)
    late = beat(node, boot_id="boot-1", engine_healthy=False, sent_at=NOON - timedelta(seconds=10))
    node.refresh_from_db()
    assert (node.boot_id, node.engine_healthy, node.reported_at) == ("boot-2", True, NOON)
    assert facts_of(loaded)[1] == "loaded"
    assert (late.unknown, late.recycle, late.resend) == ([], None, True)


def test_a_report_that_is_overtaken_while_it_is_taken_in_turns_nothing_back(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*_args: object) -> None:
        Node.objects.filter(pk=node.pk).update(boot_id="boot-2", reported_at=NOON)

    monkeypatch.setattr("cachecontrol.services.reports._record_absences", meanwhile)
    assert beat(node, sent_at=NOON - timedelta(seconds=1)).resend
    node.refresh_from_db()
    assert node.boot_id == "boot-2"


def test_a_node_whose_clock_was_put_back_is_heard(node: Node) -> None:
    beat(node, sent_at=NOON)
    beat(node, boot_id="boot-2", sent_at=NOON - timedelta(hours=1))
    beat(node, boot_id="boot-3")
    beat(node, boot_id="boot-4", sent_at=NOON)
    node.refresh_from_db()
    assert node.boot_id == "boot-4"


def test_it_is_known_since_when_an_engine_is_not_well(node: Node) -> None:
    beat(node, engine_healthy=False)
    node.refresh_from_db()
    first = node.engine_sick_since
    beat(node, engine_healthy=False)
    node.refresh_from_db()
    assert first is not None
    assert node.engine_sick_since == first
    beat(node)
    node.refresh_from_db()
    assert node.engine_sick_since is None
