"""What no plan may do, whatever it is made of."""

from dataclasses import replace
from uuid import UUID

from hypothesis import HealthCheck, given
from hypothesis import settings as depth
from hypothesis import strategies as st

from bench.planner.checks import violations
from bench.planner.steps import applied
from cachecontrol.placement.changes import Step, between
from cachecontrol.placement.facts import Holding, Plan, PlannedNode, PlannedVersion, PlanSettings
from cachecontrol.placement.plan import make_plan
from cachecontrol.placement.replan import Change, NodeChanged, NodeGone, VersionChanged, VersionGone, after
from tests.unit.cachecontrol.placement import kit

quick = depth(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
changes = st.one_of(
    kit.nodes.map(NodeChanged),
    st.sampled_from([NodeGone(f"n{number}") for number in range(8)]),
    kit.versions.map(VersionChanged),
    st.integers(1, 24).map(lambda number: VersionGone(UUID(int=number))),
)


@quick
@given(kit.fleets, kit.catalogues, kit.settings)
def test_a_plan_respects_places_bytes_ranks_bases_pins_and_quotas(
    nodes: list[PlannedNode], versions: list[PlannedVersion], settings: PlanSettings
) -> None:
    assert violations(make_plan(nodes, versions, settings)) == []


@quick
@given(kit.fleets, kit.fleets, kit.catalogues, kit.settings, kit.settings)
def test_a_plan_upon_another_is_as_sound_and_puts_nothing_new_on_a_closed_node(
    before: list[PlannedNode],
    nodes: list[PlannedNode],
    versions: list[PlannedVersion],
    were: PlanSettings,
    settings: PlanSettings,
) -> None:
    previous = make_plan(before, versions, were)
    assert violations(make_plan(nodes, versions, settings, previous), previous) == []


@quick
@given(kit.fleets, kit.catalogues, kit.settings, st.randoms(use_true_random=False))
def test_the_same_facts_in_any_order_give_the_same_plan(
    nodes: list[PlannedNode], versions: list[PlannedVersion], settings: PlanSettings, rng: object
) -> None:
    plan = make_plan(nodes, versions, settings)
    rng.shuffle(nodes)  # type: ignore[attr-defined]
    rng.shuffle(versions)  # type: ignore[attr-defined]
    assert make_plan(nodes, versions, settings) == plan


@quick
@given(kit.fleets, kit.catalogues, kit.settings, st.lists(changes, min_size=1, max_size=4))
def test_after_changes_a_plan_is_as_sound_as_one_made_anew(
    nodes: list[PlannedNode], versions: list[PlannedVersion], settings: PlanSettings, several: list[Change]
) -> None:
    plan = make_plan(nodes, versions, settings)
    for change in several:
        changed = after(plan, change)
        assert violations(changed, plan) == []
        plan = changed


@quick
@given(kit.fleets, kit.catalogues, kit.settings, st.integers(1, 5), st.data())
def test_steps_lead_to_the_plan_within_what_nodes_can_hold(
    nodes: list[PlannedNode], versions: list[PlannedVersion], settings: PlanSettings, limit: int, data: st.DataObject
) -> None:
    fleet = [replace(node, is_up=True) for node in nodes]
    opened = [replace(node, is_cordoned=False, is_draining=False) for node in fleet]
    held: Holding = _held(make_plan(opened, data.draw(st.permutations(versions)), replace(settings, choices=1)))
    plan = make_plan(fleet, versions, settings, held)
    for _pass in range(200):
        moves = between(plan, held, limit=limit)
        if not moves:
            break
        commands = [move for move in moves if move.step not in {Step.COOL, Step.HEAT}]
        by_restart = {move.node for move in commands if not plan.nodes[move.node].capabilities.runtime_load}
        alone = [move for move in commands if move.node not in by_restart]
        assert len(alone) + len(by_restart) <= limit
        for move in moves:
            held = applied(held, [move])
            _within_limits(plan, held, move.node)
    for kind in ("loaded", "hot", "disk"):
        is_there = {name: there for name, there in getattr(held, kind).items() if there}
        assert is_there == getattr(plan, kind)


def _held(plan: Plan) -> Holding:
    return Holding(loaded=plan.loaded, hot=plan.hot, disk=plan.disk)


def _within_limits(plan: Plan, held: Holding, name: str) -> None:
    node = plan.nodes[name]
    loaded, files = (
        held.loaded.get(name, frozenset()),
        held.loaded.get(name, frozenset()) | held.disk.get(name, frozenset()),
    )
    assert len(loaded) <= node.room
    assert len(held.hot.get(name, frozenset())) <= node.hot_limit
    for budget, there in ((node.cpu_bytes, loaded), (node.disk_bytes, files)):
        assert budget is None or sum(plan.needs[each].version.size_bytes for each in there) <= budget
