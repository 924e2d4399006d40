from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.nodes.fleet import Fleet
from gateway.routing.breaker import MISSED_CHECKS, RUN_OF_FAILURES
from gateway.routing.choose import Candidate, Miss, NodeState, Places, Wish, candidates, choose
from gateway.routing.snapshot import Residency
from tests.unit.gateway.worlds import BASE, V1, V2, World, acme_world, node_row, residency_row

OTHERS = [UUID(int=number) for number in range(100, 120)]
SLOTS = 4  # of the nodes of these worlds
IDS = [(number, UUID(int=200 + number)) for number in range(8)]


def nobody(_: Residency) -> bool:
    return False


class Chooser:
    """Chooses for v1 in a world, at a time and with draws that the test sets."""

    def __init__(self, world: World) -> None:
        self.now = 100.0
        self.draws = [0.0]
        self.fleet = Fleet(clock=lambda: self.now)
        self.snapshot = world.snapshot()
        self.found = candidates(self.snapshot, self.snapshot.versions[V1])

    def busy(self, **requests: int) -> "Chooser":
        """So many requests of v1 at each node."""
        for node, number in requests.items():
            for _ in range(number):
                self.fleet.enter(node, V1)
        return self

    def eject(self, node: str) -> None:
        for _ in range(RUN_OF_FAILURES):
            self.fleet.fail(self.fleet.enter(node, V1))

    def down(self, node: str) -> None:
        for _ in range(MISSED_CHECKS):
            self.fleet.checked(node, healthy=False)

    def state(self, node: str) -> NodeState:
        return self.fleet.states[node]

    def choice(self, wish: Wish | None = None) -> Candidate | Miss:
        draws = iter(self.draws)
        return choose(
            self.found,
            states=self.fleet.states,
            wish=wish or Wish(),
            now=self.now,
            is_absent=nobody,
            draw=lambda: next(draws),
        )

    def node(self, wish: Wish | None = None) -> str:
        choice = self.choice(wish)
        assert isinstance(choice, Candidate)
        return choice.node.name


def world_of(*names: str) -> World:
    """V1 loaded on each of these nodes."""
    world = acme_world()
    world.nodes = [node_row(name) for name in names]
    world.residencies = [residency_row(name, world.versions[0]) for name in names]
    return world


def test_the_node_that_has_the_version_loaded_is_chosen() -> None:
    assert Chooser(acme_world()).node() == "n1"


def test_a_version_that_is_loaded_nowhere_is_cold() -> None:
    world = acme_world()
    world.residencies.clear()
    assert Chooser(world).choice() is Miss.COLD


def test_a_version_that_is_loading_or_draining_is_not_routable() -> None:
    for observed in ("loading", "draining", "on_disk", "failed"):
        world = acme_world()
        world.residencies[0] = residency_row("n1", world.versions[0], observed=observed)
        assert Chooser(world).choice() is Miss.COLD


def test_the_less_busy_of_two_nodes_is_chosen() -> None:
    assert Chooser(world_of("n1", "n2")).busy(n1=3, n2=2).node() == "n2"
    assert Chooser(world_of("n1", "n2")).busy(n1=1, n2=2).node() == "n1"
    assert Chooser(world_of("n1", "n2")).busy(n1=1).node() == "n2"


def test_equally_busy_nodes_take_turns_by_lot() -> None:
    chooser = Chooser(world_of("n1", "n2"))
    chooser.draws = [0.2]
    assert chooser.node() == "n1"
    chooser.draws = [0.7]
    assert chooser.node() == "n2"


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True))
def test_of_many_nodes_two_different_ones_are_compared(first: float, second: float) -> None:
    chooser = Chooser(world_of("n1", "n2", "n3", "n4")).busy(n1=4, n2=3, n3=2, n4=1)
    chooser.draws = [first, second]
    assert chooser.node() != "n1"  # the busiest is never the better of two different ones


def test_the_faster_of_two_idle_nodes_is_chosen() -> None:
    chooser = Chooser(world_of("n1", "n2"))
    chooser.state("n1").pace.slope_ms = 2.0
    assert chooser.node() == "n2"


def test_a_node_where_the_promised_time_would_break_comes_last() -> None:
    chooser = Chooser(world_of("n1", "n2")).busy(n1=1, n2=4)
    chooser.state("n1").pace.floor_ms = 100.0
    assert chooser.node() == "n1"
    assert chooser.node(Wish(token_ms=50.0)) == "n2"


def test_where_every_node_would_break_it_the_less_busy_one_is_chosen() -> None:
    assert Chooser(world_of("n1", "n2")).busy(n1=3, n2=2).node(Wish(token_ms=0.1)) == "n2"


def test_a_version_in_a_slot_is_preferred_to_one_on_disk() -> None:
    world = world_of("n1", "n2")
    world.residencies[0] = (*world.residencies[0], "disk")
    assert Chooser(world).node() == "n2"


def test_a_lost_node_comes_last_but_is_not_ruled_out() -> None:
    world = world_of("n1", "n2")
    world.nodes[0] = node_row("n1", status="lost")
    assert Chooser(world).busy(n2=99).node() == "n2"
    world.residencies.pop()
    assert Chooser(world).node() == "n1"


def test_a_session_stays_with_its_node() -> None:
    chooser = Chooser(world_of("n1", "n2", "n3"))
    liked = chooser.node(Wish(session="s-1"))
    chooser.busy(**{liked: 5})
    assert chooser.node(Wish(session="s-1")) == liked


def test_a_session_leaves_a_node_that_is_far_busier_than_its_second() -> None:
    chooser = Chooser(world_of("n1", "n2"))
    liked = chooser.node(Wish(session="s-1"))
    chooser.busy(**{liked: 9})
    assert chooser.node(Wish(session="s-1")) != liked


def test_sessions_spread_over_the_nodes_and_only_those_of_a_lost_node_move() -> None:
    chooser, fewer = Chooser(world_of("n1", "n2", "n3")), Chooser(world_of("n1", "n2"))
    before = {session: chooser.node(Wish(session=session)) for session in map(str, range(600))}
    after = {session: fewer.node(Wish(session=session)) for session in before}
    assert all(140 < list(before.values()).count(node) < 260 for node in ("n1", "n2", "n3"))
    assert all(after[session] == node for session, node in before.items() if node != "n3")


def test_a_node_whose_slots_are_full_of_others_takes_no_other_version() -> None:
    chooser = Chooser(world_of("n1", "n2"))
    for version_id in OTHERS[:SLOTS]:
        chooser.fleet.enter("n1", version_id)
    chooser.busy(n2=50)
    assert chooser.node() == "n2"


def test_where_all_slots_are_full_of_others_the_version_waits() -> None:
    chooser = Chooser(world_of("n1"))
    flights = [chooser.fleet.enter("n1", version_id) for version_id in OTHERS[:SLOTS]]
    assert chooser.choice() is Miss.CROWDED
    chooser.fleet.succeed(flights[0])
    assert chooser.node() == "n1"


def test_a_version_that_is_in_flight_already_needs_no_other_slot() -> None:
    chooser = Chooser(world_of("n1")).busy(n1=1)
    for version_id in OTHERS[: SLOTS - 1]:
        chooser.fleet.enter("n1", version_id)
    assert chooser.node() == "n1"


def test_an_ejected_node_is_passed_over() -> None:
    chooser = Chooser(world_of("n1", "n2")).busy(n2=50)
    chooser.eject("n1")
    assert chooser.node() == "n2"


def test_where_all_nodes_are_ejected_one_is_chosen_all_the_same() -> None:
    chooser = Chooser(world_of("n1", "n2"))
    chooser.eject("n1")
    chooser.eject("n2")
    assert chooser.node() in {"n1", "n2"}


def test_a_node_that_is_down_is_not_chosen_even_if_it_is_the_only_one() -> None:
    chooser = Chooser(world_of("n1"))
    chooser.down("n1")
    assert chooser.choice() is Miss.DOWN


def test_a_version_waits_for_a_slot_before_it_goes_to_an_ejected_node() -> None:
    chooser = Chooser(world_of("n1", "n2"))
    chooser.eject("n1")
    for version_id in OTHERS[:SLOTS]:
        chooser.fleet.enter("n2", version_id)
    assert chooser.choice() is Miss.CROWDED


def test_after_its_ejection_a_node_gets_a_request_now_and_then() -> None:
    chooser = Chooser(world_of("n1", "n2")).busy(n2=3)
    chooser.eject("n1")
    chooser.now += 3
    assert chooser.node() == "n1"
    chooser.fleet.enter("n1", V1)
    assert chooser.node() == "n2"


def test_a_node_with_another_base_is_never_chosen() -> None:
    world = acme_world()
    world.nodes[0] = node_row("n1", base="c" * 64)
    assert Chooser(world).choice() is Miss.COLD


def test_an_engine_of_an_unknown_kind_is_never_chosen() -> None:
    world = acme_world()
    world.nodes[0] = ("n1", "abacus", *node_row("n1")[2:])
    assert Chooser(world).choice() is Miss.COLD


@pytest.mark.parametrize("kind", ["vllm", "sglang", "tgi", "lorax"])
def test_every_known_kind_of_engine_can_be_chosen(kind: str) -> None:
    world = acme_world()
    world.nodes[0] = ("n1", kind, *node_row("n1")[2:])
    assert Chooser(world).node() == "n1"


def test_a_node_with_too_small_a_rank_is_never_chosen() -> None:
    world = acme_world()
    world.nodes[0] = node_row("n1", max_rank=4)
    assert Chooser(world).choice() is Miss.COLD


def test_a_residency_under_another_engine_name_is_never_chosen() -> None:
    world = acme_world()
    world.residencies[0] = ("n1", V1, "lk-something-else", "loaded", 1)
    assert Chooser(world).choice() is Miss.COLD


def test_a_residency_on_an_unknown_node_is_passed_over() -> None:
    world = acme_world()
    world.nodes.clear()
    assert Chooser(world).choice() is Miss.COLD


def test_an_absent_residency_is_passed_over() -> None:
    chooser = Chooser(world_of("n1", "n2"))
    choice = choose(
        chooser.found,
        states=chooser.fleet.states,
        wish=Wish(),
        now=0.0,
        is_absent=lambda residency: residency.node == "n1",
    )
    assert isinstance(choice, Candidate)
    assert choice.node.name == "n2"


def test_places_are_found_once_and_again_after_a_change() -> None:
    world, places = world_of("n1", "n2"), Places()
    snapshot = world.snapshot()
    found = places.of(snapshot, snapshot.versions[V1])
    assert places.of(snapshot, snapshot.versions[V1]) is found
    elsewhere = snapshot.with_residencies({V1: snapshot.residencies[V1][:1]})
    assert [candidate.node.name for candidate in places.of(elsewhere, elsewhere.versions[V1])] == ["n1"]
    assert places.of(elsewhere, elsewhere.versions[V2]) == ()
    world.nodes.pop()
    shrunk = world.snapshot()
    assert [candidate.node.name for candidate in places.of(shrunk, shrunk.versions[V1])] == ["n1"]


def test_a_revoked_version_is_not_answered_from_memory() -> None:
    snapshot, places = acme_world().snapshot(), Places()
    places.of(snapshot, snapshot.versions[V1])
    withdrawn = snapshot.revoking([V1])
    assert withdrawn.versions[V1] is not snapshot.versions[V1]
    assert places.of(withdrawn, withdrawn.versions[V1]) is not places.of(snapshot, snapshot.versions[V1])


def test_every_node_of_a_base_model_can_answer_for_it() -> None:
    snapshot = world_of("n1", "n2").snapshot()
    found = Places().of_base(snapshot, "base")
    assert [(candidate.node.name, candidate.tier, candidate.form.model) for candidate in found] == [
        ("n1", "base", "base"),
        ("n2", "base", "base"),
    ]
    assert Places().of_base(snapshot, "another") == ()


ACTS = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "ask", "end", "fail", "down", "well", "wait"]), st.integers(0, 7)),
    max_size=120,
)


@given(ACTS)
def test_whatever_happens_slots_are_not_overrun_and_a_well_node_comes_before_a_sick_one(
    acts: list[tuple[str, int]],
) -> None:
    world = acme_world()
    names = ["n1", "n2", "n3"]
    versions = [(version_id, "acme", "tone", f"v{at}", f"lk-{at}", BASE, 8, "approved") for at, version_id in IDS]
    world.versions = versions
    world.nodes = [(*node_row(name)[:6], 2, "up") for name in names]
    world.residencies = [residency_row(name, version) for version in versions for name in names]
    snapshot, clock = world.snapshot(), [0.0]
    fleet, flights = Fleet(clock=lambda: clock[0]), []
    for act, number in acts:
        if act == "ask":
            version = snapshot.versions[IDS[number][1]]
            best = choose(
                candidates(snapshot, version), states=fleet.states, wish=Wish(), now=clock[0], is_absent=nobody
            )
            breakers = {name: fleet.states[name].breaker for name in names}
            room = {
                name
                for name in names
                if version.id in fleet.states[name].versions or len(fleet.states[name].versions) < 2
            }
            well = {name for name in room if breakers[name].allows(clock[0])}
            if isinstance(best, Candidate):
                name = best.node.name
                assert not breakers[name].is_down
                assert name in room
                assert name in well or not well
                flights.append(fleet.enter(name, version.id))
            else:
                assert not well
        elif act in {"end", "fail"} and flights:
            flight = flights.pop(number % len(flights))
            fleet.succeed(flight) if act == "end" else fleet.fail(flight)
        elif act in {"down", "well"}:
            fleet.checked(names[number % 3], healthy=act == "well")
        clock[0] += 0.5 * (act == "wait")
