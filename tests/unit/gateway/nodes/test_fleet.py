from gateway.nodes.fleet import Fleet
from gateway.routing.breaker import FIRST_EJECTION_S, MISSED_CHECKS, RUN_OF_FAILURES, BreakerState
from tests.unit.gateway.worlds import V1, V2


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_requests_are_counted_by_node_and_version_until_they_end() -> None:
    fleet = Fleet()
    flights = [fleet.enter("n1", V1), fleet.enter("n1", V2), fleet.enter("n2", V1), fleet.enter("n2", None)]
    assert {name: state.in_flight for name, state in fleet.states.items()} == {"n1": 2, "n2": 2}
    assert set(fleet.versions()) == {V1, V2}
    fleet.succeed(flights[1])
    fleet.fail(flights[0])
    assert (fleet.in_flight, fleet.versions()) == (2, (V1,))
    fleet.give_up(flights[2])
    fleet.succeed(flights[3])
    assert (fleet.in_flight, fleet.versions()) == (0, ())


def test_a_flight_knows_how_many_were_there_with_it() -> None:
    fleet = Fleet()
    assert [fleet.enter("n1", V1).batch for _ in range(3)] == [1, 2, 3]


def test_whoever_waits_for_a_slot_is_told_when_the_last_request_of_a_version_ends() -> None:
    fleet, told = Fleet(), []
    fleet.on_room = lambda: told.append(fleet.in_flight)
    first, second, base = fleet.enter("n1", V1), fleet.enter("n1", V1), fleet.enter("n1", None)
    fleet.succeed(base)
    fleet.succeed(first)
    assert told == []
    fleet.succeed(second)
    assert told == [0]


def test_failures_eject_a_node_and_a_trial_brings_it_back() -> None:
    clock = Clock()
    fleet = Fleet(clock=clock)
    for _ in range(RUN_OF_FAILURES):
        fleet.fail(fleet.enter("n1", V1))
    assert fleet.breaker_states() == {"n1": BreakerState.OPEN}
    clock.now = FIRST_EJECTION_S
    fleet.give_up(fleet.enter("n1", V1))
    assert fleet.breaker_states() == {"n1": BreakerState.HALF_OPEN}
    fleet.succeed(fleet.enter("n1", V1))
    assert fleet.breaker_states() == {"n1": BreakerState.CLOSED}


def test_missed_health_checks_take_a_node_down() -> None:
    fleet = Fleet()
    for _ in range(MISSED_CHECKS):
        fleet.checked("n1", healthy=False)
    assert fleet.breaker_states() == {"n1": BreakerState.DOWN}


def test_a_node_that_left_is_forgotten_once_nothing_is_there_any_more() -> None:
    fleet = Fleet()
    flight = fleet.enter("n1", V1)
    fleet.enter("n2", V1)
    fleet.keep_only(["n2"])
    assert set(fleet.states) == {"n1", "n2"}
    fleet.succeed(flight)
    fleet.keep_only(["n2"])
    assert set(fleet.states) == {"n2"}
