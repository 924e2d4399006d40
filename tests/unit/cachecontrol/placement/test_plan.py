"""Where versions go. Each node has 4 places and 2 slots, each version 10 requests per hour and 100 bytes."""

from dataclasses import replace
from uuid import UUID

from cachecontrol.engines import CAPABILITIES
from cachecontrol.placement.facts import NOTHING, Holding, Plan, PlanSettings, TenantLimits, Unplaced
from cachecontrol.placement.plan import make_plan
from cachecontrol.states import EngineKind
from tests.unit.cachecontrol.placement.kit import homes, ids, node, version

SPREAD = PlanSettings(consolidates=False)
TEN = [node(f"n{number}") for number in range(10)]


def of(*held: int) -> dict[str, frozenset[UUID]]:
    return {"n1": ids(*held)}


def test_what_fits_is_in_the_engine_and_the_worthiest_in_its_slots() -> None:
    plan = make_plan([node("n1")], [version(number, rate=number * 10) for number in (1, 2, 3, 4)], SPREAD)
    assert (plan.loaded, plan.hot, plan.disk, plan.unplaced) == (of(1, 2, 3, 4), of(3, 4), {}, {})


def test_what_finds_no_place_is_kept_on_a_disk_and_said() -> None:
    plan = make_plan([node("n1")], [version(number, rate=number * 10) for number in range(1, 7)], SPREAD)
    assert (plan.loaded, plan.disk) == (of(3, 4, 5, 6), of(1, 2))
    assert plan.unplaced == {UUID(int=1): Unplaced.NO_ROOM, UUID(int=2): Unplaced.NO_ROOM}


def test_what_was_taken_from_a_node_by_hand_goes_to_another_or_nowhere() -> None:
    nodes = [node("n1"), node("n2")]
    for settings in (SPREAD, PlanSettings()):
        asked = replace(version(1), unwanted_on=frozenset({"n1"}))
        assert make_plan(nodes, [asked, version(2)], settings).loaded["n2"] >= ids(1)
    nowhere = make_plan([node("n1")], [replace(version(1), unwanted_on=frozenset({"n1", "gone"}))], SPREAD)
    assert (nowhere.loaded, nowhere.disk, nowhere.unplaced) == ({}, {}, {UUID(int=1): Unplaced.NO_NODE})


def test_what_is_on_a_node_for_all_that_was_said_by_hand_stays() -> None:
    back = replace(version(1), unwanted_on=frozenset({"n1"}))
    assert make_plan([node("n1")], [back], SPREAD, Holding(loaded=of(1))).loaded == of(1)


def test_a_hot_version_is_on_as_many_nodes_as_its_load_needs() -> None:
    settings = replace(SPREAD, requests_per_h_per_node=100.0, fill=1.0)
    plan = make_plan(TEN, [version(1, rate=350), version(2)], settings)
    assert (len(homes(plan.loaded, 1)), len(homes(plan.loaded, 2))) == (4, 1)


def test_what_a_node_was_measured_to_serve_counts_more_than_what_is_set() -> None:
    measured = [replace(each, requests_per_h=50.0) for each in TEN]
    plan = make_plan(measured, [version(1, rate=120)], replace(SPREAD, fill=1.0))
    assert len(homes(plan.loaded, 1)) == 3


def test_the_load_of_a_node_stays_bounded() -> None:
    plan = make_plan(TEN, [version(number, rate=100) for number in range(1, 21)], SPREAD)
    assert max(len(held) for held in plan.loaded.values()) <= 3  # 1.25 times the mean of 2


def test_no_more_nodes_than_needed_are_used() -> None:
    plan = make_plan(TEN, [version(number) for number in range(1, 5)], PlanSettings())
    assert len(plan.loaded) == 2  # each of the four wants one of two slots


def test_a_few_idle_nodes_are_not_given_up_and_many_are() -> None:
    versions = [version(number) for number in range(1, 9)]
    spread = make_plan(TEN[:5], versions, SPREAD)
    assert make_plan(TEN[:5], versions, PlanSettings(), spread).loaded == spread.loaded
    wide = Holding(loaded={f"n{number}": ids(number + 1) for number in range(8)})
    assert len(make_plan(TEN, versions[:6], PlanSettings(), wide).loaded) == 6
    settings = PlanSettings(give_up_below=0.75)
    assert len(make_plan(TEN, versions, settings, wide).loaded) == 4


def test_what_nobody_asks_for_stays_on_a_node_that_is_given_up() -> None:
    wide = Holding(loaded={f"n{number}": ids(number + 1, number + 101) for number in range(8)})
    versions = [version(number) for number in range(1, 9)] + [version(number, rate=0) for number in range(101, 109)]
    plan = make_plan(TEN, versions, PlanSettings(give_up_below=0.75), wide)
    assert len({name for number in range(1, 9) for name in homes(plan.loaded, number)}) == 4
    assert all(homes(plan.loaded, number) == {f"n{number - 101}"} for number in range(101, 109))


def test_a_slot_is_lost_only_to_what_wants_it() -> None:
    held = Holding(loaded=of(1, 2), hot=of(1))
    fleet, idle = [node("n1", gpu_slots=1, hot_limit=1)], [version(1, rate=0), version(2, rate=0)]
    assert make_plan(fleet, idle, SPREAD, held).hot == of(1)
    assert make_plan(fleet, [idle[0], version(2)], SPREAD, held).hot == of(2)


def test_ranks_are_kept_together() -> None:
    versions = [version(number, rank=64 if number % 4 else 8) for number in range(1, 13)]
    plan = make_plan(TEN, versions, replace(SPREAD, load_factor=2.0, choices=10))
    mixed = [held for held in plan.loaded.values() if len({plan.needs[each].version.rank for each in held}) > 1]
    assert mixed == []


def test_what_is_placed_stays_where_it_is() -> None:
    versions = [version(number) for number in range(1, 9)]
    wherever = Holding(loaded={"n3": ids(1, 2, 3, 4), "n7": ids(5, 6, 7, 8)}, disk={"n1": ids(1)})
    plan = make_plan(TEN, versions, PlanSettings(), wherever)
    assert (plan.loaded, plan.disk) == (wherever.loaded, wherever.disk)


def test_an_idle_version_stays_until_its_place_is_needed() -> None:
    held = Holding(loaded=of(1))
    assert make_plan([node("n1", places=1)], [version(1, rate=0)], SPREAD, held).loaded == of(1)
    plan = make_plan([node("n1", places=1)], [version(1, rate=0), version(2)], SPREAD, held)
    assert (plan.loaded, plan.disk) == (of(2), of(1))


def test_a_place_changes_hands_only_for_what_is_clearly_worth_more() -> None:
    held = Holding(loaded=of(1))
    for rate, stays in ((11.0, 1), (13.0, 2)):
        plan = make_plan([node("n1", places=1)], [version(1), version(2, rate=rate)], SPREAD, held)
        assert plan.loaded == of(stays)


def test_a_version_that_may_not_be_served_any_more_is_in_no_plan() -> None:
    plan = make_plan([node("n1")], [], SPREAD, Holding(loaded=of(1), hot=of(1), disk=of(2)))
    assert (plan.loaded, plan.hot, plan.disk) == ({}, {}, {})


def test_pins_take_all_slots_but_one_and_the_rest_is_said() -> None:
    plan = make_plan([node("n1", gpu_slots=3)], [version(n, rate=0, is_pinned=True) for n in (1, 2, 3)], SPREAD)
    assert plan.hot == plan.loaded == of(1, 2)
    assert plan.unplaced == {UUID(int=3): Unplaced.PINS}


def test_a_pinned_version_displaces_what_is_busier() -> None:
    held = Holding(loaded=of(2))
    plan = make_plan([node("n1", places=1)], [version(1, rate=0, is_pinned=True), version(2, rate=999)], SPREAD, held)
    assert plan.loaded == plan.hot == of(1)


def test_a_cordoned_node_keeps_what_it_has_and_gets_nothing() -> None:
    closed = node("n1", is_cordoned=True)
    plan = make_plan([closed, node("n2")], [version(1), version(2)], SPREAD, Holding(loaded=of(1)))
    assert plan.loaded == {"n1": ids(1), "n2": ids(2)}


def test_what_was_on_a_drained_or_lost_node_is_elsewhere() -> None:
    for closed in (node("n1", is_draining=True), node("n1", is_up=False)):
        plan = make_plan([closed, node("n2")], [version(1)], SPREAD, Holding(loaded=of(1), disk=of(2)))
        assert (plan.loaded, plan.disk) == ({"n2": ids(1)}, {})


def test_another_base_or_a_low_limit_of_ranks_is_no_place() -> None:
    plan = make_plan([node("n1", max_rank=8)], [version(1), version(2, rank=8, base_digest="c" * 64)], SPREAD)
    assert plan.unplaced == {UUID(int=1): Unplaced.NO_NODE, UUID(int=2): Unplaced.NO_NODE}
    assert (plan.loaded, plan.disk) == ({}, {})


def test_bytes_are_a_limit_of_engines_and_of_disks() -> None:
    plan = make_plan([node("n1", cpu_bytes=250, disk_bytes=350)], [version(n, rate=n) for n in range(2, 7)], SPREAD)
    assert (plan.loaded, plan.disk) == (of(5, 6), of(4))


def test_an_engine_without_a_tier_of_its_own_beside_its_slots_holds_no_more_than_those() -> None:
    tgi = node("n1", capabilities=CAPABILITIES[EngineKind.TGI])
    assert make_plan([tgi], [version(n, rate=n) for n in range(2, 6)], SPREAD).loaded == of(4, 5)


def limited(**limits: int) -> PlanSettings:
    return replace(SPREAD, limits={"acme": TenantLimits(**limits)})


def test_a_tenant_gets_no_more_slots_bytes_and_places_than_it_may_have() -> None:
    several = [version(n, rate=n) for n in range(2, 6)]
    assert make_plan([node("n1")], several, limited(hot=1)).hot == of(5)
    plan = make_plan([node("n1")], several, limited(cpu_bytes=250))
    assert (plan.loaded, plan.unplaced[UUID(int=2)]) == (of(4, 5), Unplaced.QUOTA)
    assert make_plan([node("n1")], several, limited(places_per_node=3)).loaded == of(3, 4, 5)
    plan = make_plan([node("n1", places=1)], several, limited(disk_bytes=200))
    assert (plan.loaded, plan.disk) == (of(5), of(4))


def test_a_tenant_at_its_ceiling_displaces_only_its_own() -> None:
    others = version(9, rate=2, tenant="bolt")
    plan = make_plan(
        [node("n1")],
        [version(1, rate=5), version(2, rate=50), others],
        limited(cpu_bytes=100),
        Holding(loaded=of(1, 9)),
    )
    assert plan.loaded == of(2, 9)


def test_a_floor_takes_a_place_from_those_who_have_it_on_loan() -> None:
    settings = replace(SPREAD, limits={"bolt": TenantLimits(hot_floor=1)})
    versions = [version(1, rate=99), version(2, rate=5, tenant="bolt")]
    plan = make_plan([node("n1", places=1)], versions, settings, Holding(loaded=of(1)))
    assert plan.loaded == of(2)


def test_files_are_kept_on_as_many_disks_as_wanted() -> None:
    plan = make_plan(TEN, [version(1), version(2, rate=0)], replace(SPREAD, disk_copies=3))
    assert (len(homes(plan.disk, 1)), len(homes(plan.disk, 2))) == (2, 0)
    assert not homes(plan.disk, 1) & homes(plan.loaded, 1)


def test_a_node_that_leaves_moves_only_what_it_had() -> None:
    fleet = [node(f"n{number:02}", places=16, gpu_slots=8, hot_limit=8) for number in range(40)]
    versions = [version(number, rate=1 + number % 50) for number in range(1, 301)]
    plan = make_plan(fleet, versions, PlanSettings())
    name = max(plan.loaded, key=lambda name: len(plan.loaded[name]))
    rest = make_plan([each for each in fleet if each.name != name], versions, PlanSettings(), plan)
    moved = {each for where in rest.loaded for each in rest.loaded[where] - plan.loaded.get(where, NOTHING)}
    assert plan.loaded[name] <= moved
    assert len(moved - plan.loaded[name]) <= 0.02 * _copies(plan)


def _copies(plan: Plan) -> int:
    return sum(len(held) for held in plan.loaded.values())


def test_a_floor_for_disks_keeps_files_against_those_that_are_worth_more() -> None:
    held = Holding(disk={"n1": ids(1, 2)})
    versions = [version(1, rate=0.0), version(2, rate=0.01, tenant="bolt")]
    nodes = [node("n1", disk_bytes=150)]
    settings = replace(SPREAD, warm_rate_per_h=1.0)
    assert make_plan(nodes, versions, settings, held).disk == {"n1": ids(2)}
    floor = replace(settings, limits={"acme": TenantLimits(disk_floor_bytes=100)})
    assert make_plan(nodes, versions, floor, held).disk == {"n1": ids(1)}
