from dataclasses import replace
from uuid import UUID

from cachecontrol.engines import CAPABILITIES
from cachecontrol.placement.changes import Move, between
from cachecontrol.placement.facts import Holding, Plan, PlannedNode, PlannedVersion, PlanSettings
from cachecontrol.placement.plan import make_plan
from cachecontrol.states import EngineKind
from tests.unit.cachecontrol.placement.kit import ids, node, version

SETTINGS = PlanSettings(consolidates=False)
TWO = (node("n1", places=1), node("n2", places=1))
NOTHING_HELD = Holding()


def plan_of(
    held: Holding, *nodes: PlannedNode, versions: tuple[PlannedVersion, ...] = (version(1), version(2))
) -> Plan:
    """A plan that says ``held``, which is what placement keeps when it fits."""
    plan = make_plan(nodes, versions, SETTINGS, held)
    return replace(plan, loaded=held.loaded, hot=held.hot, disk=held.disk)


def steps(plan: Plan, held: Holding, limit: int = 99, arriving: frozenset[tuple[str, UUID]] = frozenset()) -> list[str]:
    return [_said(move) for move in between(plan, held, limit=limit, arriving=arriving)]


def _said(move: Move) -> str:
    return f"{move.step} {move.version_id.int} {move.node}" + (" hot" if move.is_hot else "")


def test_nothing_is_to_be_done_where_everything_is_as_planned() -> None:
    held = Holding(loaded={"n1": ids(1)}, hot={"n1": ids(1)}, disk={"n2": ids(2)})
    assert steps(plan_of(held, *TWO), held) == []


def test_a_version_arrives_before_it_leaves() -> None:
    plan = plan_of(Holding(loaded={"n2": ids(1)}, disk={"n1": ids(1)}), *TWO)
    held = Holding(loaded={"n1": ids(1)})
    assert steps(plan, held) == ["load 1 n2"]
    both = Holding(loaded={"n1": ids(1), "n2": ids(1)})
    assert steps(plan, both, arriving=frozenset({("n2", UUID(int=1))})) == []
    assert steps(plan, both) == ["demote 1 n1"]


def test_files_that_have_no_room_leave_with_their_version() -> None:
    plan = plan_of(Holding(loaded={"n2": ids(1)}), *TWO)
    assert steps(plan, Holding(loaded={"n1": ids(1), "n2": ids(1)})) == ["drop 1 n1"]


def test_what_has_no_place_leaves_in_front_of_what_takes_its_place() -> None:
    plan = plan_of(Holding(loaded={"n1": ids(2)}, hot={"n1": ids(2)}, disk={"n1": ids(1)}), *TWO)
    assert steps(plan, Holding(loaded={"n1": ids(1)}, hot={"n1": ids(1)})) == [
        "cool 1 n1",
        "demote 1 n1",
        "load 2 n1 hot",
    ]


def test_two_that_want_each_others_places_dont_wait_for_ever() -> None:
    plan = plan_of(Holding(loaded={"n1": ids(1), "n2": ids(2)}), *TWO)
    held = Holding(loaded={"n1": ids(2), "n2": ids(1)})
    assert steps(plan, held) in (["drop 1 n2"], ["drop 2 n1"])


def test_what_is_arriving_elsewhere_is_waited_for() -> None:
    plan = plan_of(Holding(loaded={"n1": ids(1), "n2": ids(2)}), *TWO)
    held = Holding(loaded={"n1": ids(2), "n2": ids(2)})
    assert steps(plan, held, arriving=frozenset({("n2", UUID(int=2))})) == []


def test_a_pass_has_no_more_commands_than_its_limit_and_the_hot_ones_come_first() -> None:
    hot = plan_of(
        Holding(loaded={"n1": ids(1, 2, 3)}, hot={"n1": ids(3)}), node("n1"), versions=tuple(map(version, (1, 2, 3)))
    )
    assert steps(hot, NOTHING_HELD, limit=2) == ["load 3 n1 hot", "load 1 n1"]


def test_what_counts_as_hot_changes_without_a_command() -> None:
    plan = plan_of(Holding(loaded={"n1": ids(1, 2)}, hot={"n1": ids(2)}), node("n1"))
    held = Holding(loaded={"n1": ids(1, 2)}, hot={"n1": ids(1)})
    assert steps(plan, held, limit=0) == ["cool 1 n1", "heat 2 n1"]


def test_what_may_not_be_served_any_more_goes_first() -> None:
    plan = plan_of(Holding(loaded={"n1": ids(1)}), *TWO)
    assert steps(plan, Holding(loaded={"n1": ids(7)}, disk={"n2": ids(8)}), limit=2) == ["drop 7 n1", "drop 8 n2"]


def test_files_make_room_for_files() -> None:
    small = node("n1", disk_bytes=100)
    assert steps(plan_of(Holding(disk={"n1": ids(2)}), small), Holding(disk={"n1": ids(1)})) == [
        "drop 1 n1",
        "fetch 2 n1",
    ]


def test_nothing_is_sent_to_a_node_that_is_down() -> None:
    plan = plan_of(NOTHING_HELD, replace(TWO[0], is_up=False))
    assert steps(plan, Holding(loaded={"n1": ids(1)}, disk={"n1": ids(2)})) == []


def test_all_that_an_engine_changes_by_one_restart_is_one_command() -> None:
    tgi = node("n1", gpu_slots=3, capabilities=CAPABILITIES[EngineKind.TGI])
    plan = plan_of(Holding(loaded={"n1": ids(2, 3)}, disk={"n1": ids(1)}), tgi, versions=tuple(map(version, (1, 2, 3))))
    assert steps(plan, Holding(loaded={"n1": ids(1)}), limit=1) == ["load 2 n1", "load 3 n1", "demote 1 n1"]
