from dataclasses import replace
from uuid import UUID

from cachecontrol.placement.facts import NOTHING, Holding, Plan, PlanSettings, TenantLimits, Unplaced
from cachecontrol.placement.plan import make_plan
from cachecontrol.placement.replan import (
    NodeChanged,
    NodeGone,
    VersionChanged,
    VersionGone,
    after,
    changes_since,
    resting_on,
)
from tests.unit.cachecontrol.placement.kit import homes, ids, node, version

SPREAD = PlanSettings(consolidates=False)


def plan_of(*numbers: int, nodes: int = 1, settings: PlanSettings = SPREAD) -> Plan:
    fleet = [node(f"n{number}") for number in range(1, nodes + 1)]
    return make_plan(fleet, [version(number, rate=10 + number) for number in numbers], settings)


def test_what_was_on_a_node_that_is_gone_is_elsewhere_and_the_rest_where_it_was() -> None:
    plan = plan_of(1, 2, 3, 4, 5, 6, nodes=3)
    changed = after(plan, NodeGone("n2"))
    assert "n2" not in changed.nodes
    assert all(plan.loaded[name] <= changed.loaded[name] for name in ("n1", "n3"))
    assert frozenset().union(*changed.loaded.values()) == ids(1, 2, 3, 4, 5, 6)


def test_what_is_worth_more_takes_the_place_of_less_when_its_node_is_lost() -> None:
    plan = plan_of(*range(1, 9), nodes=2)
    weakest = frozenset(sorted(plan.needs, key=lambda each: plan.needs[each].standing)[:4])
    changed = after(plan, NodeChanged(replace(plan.nodes["n2"], is_up=False)))
    assert changed.unplaced.keys() == set(changed.needs) - changed.loaded["n1"]
    assert len(changed.loaded["n1"] & weakest) <= 2  # a swap must be worth a margin


def test_the_worthiest_of_what_waits_gets_the_room_of_a_node_that_joins() -> None:
    plan = plan_of(*range(1, 11))
    changed = after(plan, NodeChanged(node("n2")))
    assert (changed.loaded["n1"], changed.loaded["n2"]) == (plan.loaded["n1"], ids(3, 4, 5, 6))
    assert changed.unplaced.keys() == ids(1, 2)


def test_a_version_that_gets_hot_is_on_more_nodes_and_then_on_fewer() -> None:
    plan = plan_of(1, 2, nodes=4, settings=replace(SPREAD, requests_per_h_per_node=100.0, fill=1.0))
    hot = after(plan, VersionChanged(version(1, rate=290)))
    assert len(homes(hot.loaded, 1)) == 3
    assert homes(hot.loaded, 1) > homes(plan.loaded, 1)
    assert len(homes(after(hot, VersionChanged(version(1, rate=20))).loaded, 1)) == 1


def test_a_new_version_takes_the_place_of_what_is_worth_less() -> None:
    plan = plan_of(1, 2, 3, 4)
    changed = after(plan, VersionChanged(version(9, rate=500)))
    assert (changed.loaded["n1"], changed.disk["n1"]) == (ids(2, 3, 4, 9), ids(1))
    assert changed.unplaced == {UUID(int=1): Unplaced.NO_ROOM}


def test_the_place_of_a_version_that_is_gone_goes_to_what_waited() -> None:
    plan = plan_of(1, 2, 3, 4, 5)
    changed = after(plan, VersionGone(UUID(int=5)))
    assert (changed.loaded["n1"], changed.unplaced) == (ids(1, 2, 3, 4), {})
    assert UUID(int=5) not in changed.needs


def test_a_cordoned_node_keeps_what_it_has() -> None:
    plan = plan_of(1, 2, nodes=1)
    changed = after(plan, NodeChanged(replace(plan.nodes["n1"], is_cordoned=True)))
    assert changed.loaded == plan.loaded
    assert after(changed, VersionChanged(version(3))).unplaced == {UUID(int=3): Unplaced.NO_NODE}


def test_a_floor_holds_for_what_its_tenant_gets_later() -> None:
    settings = replace(SPREAD, limits={"bolt": TenantLimits(hot_floor=1)})
    plan = plan_of(1, 2, 3, 4, settings=settings)
    changed = after(plan, VersionChanged(version(9, rate=1, tenant="bolt")))
    assert changed.loaded["n1"] == ids(2, 3, 4, 9)


def test_files_of_a_disk_that_is_gone_are_kept_on_another() -> None:
    plan = plan_of(*range(1, 11), nodes=2)
    lost = next(name for name in plan.disk)
    changed = after(plan, NodeGone(lost))
    (other,) = changed.nodes
    assert changed.disk[other] | changed.loaded[other] == ids(*range(1, 11))


def test_what_is_unwanted_on_a_node_is_not_put_there_when_its_own_is_lost() -> None:
    banned = replace(version(1), unwanted_on=frozenset({"n2"}))
    plan = make_plan([node("n1"), node("n2", is_cordoned=True), node("n3", is_cordoned=True)], [banned], SPREAD)
    assert homes(plan.loaded, 1) == {"n1"}
    opened = after(after(plan, NodeChanged(node("n2"))), NodeChanged(node("n3", is_cordoned=True)))
    assert after(opened, NodeGone("n1")).unplaced == {UUID(int=1): Unplaced.NO_NODE}
    assert homes(after(after(opened, NodeChanged(node("n3"))), NodeGone("n1")).loaded, 1) == {"n3"}


def test_what_was_just_taken_from_a_node_by_hand_goes_elsewhere() -> None:
    plan = make_plan([node("n1"), node("n2", is_cordoned=True)], [version(1)], SPREAD)
    nodes = [node("n1"), node("n2")]
    changes = changes_since(plan, nodes=nodes, versions=[replace(version(1), unwanted_on=frozenset({"n1"}))])
    assert [type(change) for change in changes] == [VersionChanged, NodeChanged], "a version's facts come first"
    changed = resting_on(plan, Holding(), changes)
    for change in changes:
        changed = after(changed, change)
    assert homes(changed.loaded, 1) == {"n2"}


def test_the_same_facts_are_no_change() -> None:
    plan = plan_of(1, 2, 3, nodes=2)
    assert changes_since(plan, nodes=plan.nodes.values(), versions=[need.version for need in plan.needs.values()]) == []
    assert resting_on(plan, plan) == plan


def test_a_change_is_taken_into_what_is_held_not_into_what_was_planned() -> None:
    """What others did since stays: only what was on the changed node, planned or not, goes elsewhere."""
    plan = plan_of(1, 2, 3, nodes=3)
    held = Holding(loaded={"n1": ids(1), "n2": ids(2, 3), "n3": NOTHING})
    lost = NodeChanged(node("n2", is_up=False))
    changed = after(resting_on(plan, held, [lost]), lost)
    assert changed.loaded["n1"] >= ids(1)
    assert homes(changed.loaded, 2) | homes(changed.loaded, 3) <= {"n1", "n3"}
    assert homes(changed.loaded, 2)
    assert homes(changed.loaded, 3)


def test_what_a_lost_node_still_has_by_the_records_does_not_count() -> None:
    plan = make_plan([node("n1", is_up=False), node("n2"), node("n3")], [version(1), version(2)], SPREAD)
    held = Holding(loaded={"n1": ids(1), "n2": ids(2)})
    resting = resting_on(plan, held)
    assert resting.loaded == {"n2": ids(2)}
    assert resting.unplaced == {UUID(int=1): Unplaced.NO_ROOM}
    back = NodeChanged(node("n1"))
    assert resting_on(plan, held, [back]).loaded == {"n1": ids(1), "n2": ids(2)}


def test_the_place_of_what_was_withdrawn_and_has_left_already_is_given_to_what_waits() -> None:
    plan = plan_of(1, 2, 3, 4, 5)
    gone = VersionGone(UUID(int=5))
    held = Holding(loaded={"n1": plan.loaded["n1"] - ids(5)})
    changed = after(resting_on(plan, held, [gone]), gone)
    assert changed.loaded["n1"] == ids(1, 2, 3, 4)


def test_what_a_node_that_is_gone_had_goes_elsewhere_although_nothing_is_recorded_of_it() -> None:
    plan = plan_of(1, 2, 3, 4, 5, 6, nodes=3)
    gone = NodeGone("n2")
    held = Holding(loaded={name: found for name, found in plan.loaded.items() if name != "n2"})
    changed = after(resting_on(plan, held, [gone]), gone)
    assert frozenset().union(*changed.loaded.values()) == ids(1, 2, 3, 4, 5, 6)
