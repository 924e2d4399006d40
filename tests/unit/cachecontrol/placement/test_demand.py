import math
from uuid import UUID

from cachecontrol.placement.demand import needs_of, replicas_of
from cachecontrol.placement.facts import Claim, PlannedVersion, PlanSettings, TenantLimits
from tests.unit.cachecontrol.placement.kit import ids, version

SETTINGS = PlanSettings(fill=0.8, max_replicas=4, shrink_below=0.75, warm_rate_per_h=1.0)


def replicas(wanted: PlannedVersion, current: int = 0) -> int:
    return replicas_of(wanted, SETTINGS, node_per_h=100.0, current=current)


def claims(*versions: PlannedVersion, settings: PlanSettings = SETTINGS) -> dict[int, Claim]:
    needs = needs_of(versions, settings, node_per_h=100.0, current={})
    return {version_id.int: need.claim for version_id, need in needs.items()}


def test_a_version_is_on_as_many_nodes_as_its_rate_needs() -> None:
    assert [replicas(version(1, rate=rate)) for rate in (0.5, 2, 80, 81, 240, 9000)] == [0, 1, 1, 2, 3, 4]


def test_a_replica_more_than_needed_stays_until_the_rate_is_clearly_below() -> None:
    assert replicas(version(1, rate=79), current=2) == 2
    assert replicas(version(1, rate=59), current=2) == 1


def test_a_pin_a_release_and_a_minimum_want_a_version_that_nobody_asks_for() -> None:
    assert replicas(version(1, rate=0, is_pinned=True)) == 1
    assert replicas(version(1, rate=0, is_wanted_on_release=True)) == 1
    assert replicas(version(1, rate=0, min_replicas=6)) == 6


def test_claims_are_pinned_then_guaranteed_then_load_then_nothing() -> None:
    found = claims(
        version(1, rate=0, is_pinned=True),
        version(2, rate=0, min_replicas=1),
        version(3, rate=0, is_wanted_on_release=True),
        version(4),
        version(5, rate=0),
    )
    assert found == {1: Claim.PINNED, 2: Claim.GUARANTEED, 3: Claim.GUARANTEED, 4: Claim.LOAD, 5: Claim.STAYING}


def test_a_floor_guarantees_the_versions_of_its_tenant_that_are_worth_most() -> None:
    settings = PlanSettings(limits={"acme": TenantLimits(hot_floor=1), "bolt": TenantLimits(cpu_floor_bytes=250)})
    found = claims(
        version(1, rate=5),
        version(2, rate=50),
        *(version(number, rate=100 - number, tenant="bolt") for number in (3, 4, 5)),
        settings=settings,
    )
    assert [number for number, claim in found.items() if claim is Claim.GUARANTEED] == [2, 3, 4]


def test_an_unused_floor_guarantees_nothing() -> None:
    settings = PlanSettings(limits={"acme": TenantLimits(hot_floor=3)})
    assert claims(version(1, rate=0), settings=settings) == {1: Claim.STAYING}


def test_a_copy_of_a_replicated_version_is_worth_its_share() -> None:
    need = needs_of([version(1, rate=160)], SETTINGS, node_per_h=100.0, current={})[UUID(int=1)]
    assert (need.replicas, need.share_per_h) == (2, 80.0)
    assert math.isclose(need.standing - 1e6, math.log(160) - math.log(2), abs_tol=1e-6)


def test_no_score_however_large_outweighs_a_claim() -> None:
    needs = needs_of(
        [version(1, is_pinned=True, keep=-math.inf), version(2, keep=math.inf)], SETTINGS, node_per_h=1e9, current={}
    )
    assert needs[UUID(int=1)].standing > needs[UUID(int=2)].standing


def test_a_floor_for_disks_guarantees_the_files_of_what_is_worth_most_however_idle() -> None:
    settings = PlanSettings(limits={"acme": TenantLimits(disk_floor_bytes=250)})
    versions = [version(number, rate=rate) for number, rate in enumerate((5.0, 0.0, 9.0), start=1)]
    versions.append(version(4, rate=99.0, tenant="bolt"))
    needs = needs_of(versions, settings, node_per_h=100, current={})
    assert {need.id for need in needs.values() if need.keeps_files} == ids(1, 3)
    assert needs[UUID(int=3)].claim is Claim.LOAD, "it is no claim to a place in an engine"
