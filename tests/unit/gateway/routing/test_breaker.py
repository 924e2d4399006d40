from gateway.routing.breaker import (
    FIRST_EJECTION_S,
    LONGEST_EJECTION_S,
    MISSED_CHECKS,
    RUN_OF_FAILURES,
    TRIAL_EVERY_S,
    WINDOW_S,
    Breaker,
    BreakerState,
)


def opened(now: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(RUN_OF_FAILURES):
        breaker.fail(now)
    return breaker


def test_a_breaker_begins_closed() -> None:
    breaker = Breaker()
    assert breaker.allows(0.0)
    assert breaker.state(0.0) is BreakerState.CLOSED


def test_a_run_of_failures_ejects() -> None:
    breaker = Breaker()
    for _ in range(RUN_OF_FAILURES - 1):
        breaker.fail(0.0)
    assert breaker.allows(0.0)
    breaker.fail(0.0)
    assert not breaker.allows(0.0)
    assert breaker.state(0.0) is BreakerState.OPEN


def test_a_success_ends_a_run() -> None:
    breaker = Breaker()
    for _ in range(2):
        for _ in range(RUN_OF_FAILURES - 1):
            breaker.fail(0.0)
        breaker.succeed(0.0)
    assert breaker.allows(0.0)


def test_half_of_twenty_requests_failing_ejects_without_a_run() -> None:
    breaker = Breaker()
    for number in range(19):
        breaker.succeed(0.0) if number % 2 else breaker.fail(0.0)
    assert breaker.allows(0.0)
    breaker.fail(0.0)
    assert not breaker.allows(0.0)


def test_failures_of_an_earlier_window_do_not_count_in_the_share() -> None:
    breaker = Breaker()
    for number in range(18):
        breaker.succeed(0.0) if number % 2 else breaker.fail(0.0)
    later = WINDOW_S + 1
    for _ in range(3):
        breaker.fail(later)
        breaker.succeed(later)
    assert breaker.allows(later)


def test_a_request_tries_now_and_then_after_the_ejection() -> None:
    breaker = opened()
    assert not breaker.allows(FIRST_EJECTION_S - 0.1)
    assert breaker.allows(FIRST_EJECTION_S)
    assert breaker.state(FIRST_EJECTION_S) is BreakerState.HALF_OPEN
    breaker.begin_trial(FIRST_EJECTION_S)
    assert not breaker.allows(FIRST_EJECTION_S)
    assert breaker.allows(FIRST_EJECTION_S + TRIAL_EVERY_S)  # the first may be a long stream


def test_a_trial_that_succeeds_closes_and_forgets() -> None:
    breaker = opened()
    breaker.begin_trial(FIRST_EJECTION_S)
    breaker.succeed(FIRST_EJECTION_S, trial=True)
    assert breaker.allows(FIRST_EJECTION_S)
    for _ in range(RUN_OF_FAILURES):
        breaker.fail(10.0)
    assert breaker.allows(10.0 + FIRST_EJECTION_S)  # the first again, not twice as long


def test_a_trial_that_fails_ejects_for_twice_as_long_up_to_a_minute() -> None:
    breaker, now, lasted = opened(), 0.0, []
    for _ in range(8):
        began = now
        while not breaker.allows(now):
            now += 0.5
        lasted.append(now - began)
        breaker.begin_trial(now)
        breaker.fail(now, trial=True)
    assert lasted[:3] == [FIRST_EJECTION_S, 2 * FIRST_EJECTION_S, 4 * FIRST_EJECTION_S]
    assert max(lasted) <= LONGEST_EJECTION_S


def test_a_trial_that_tells_nothing_makes_room_for_the_next() -> None:
    breaker = opened()
    breaker.begin_trial(FIRST_EJECTION_S)
    breaker.give_up(trial=True)
    assert breaker.allows(FIRST_EJECTION_S)
    assert breaker.state(FIRST_EJECTION_S) is BreakerState.HALF_OPEN


def test_requests_during_an_ejection_that_fail_do_not_prolong_it_and_one_that_succeeds_ends_it() -> None:
    breaker = opened()
    for _ in range(10):
        breaker.begin_trial(1.0)
        breaker.fail(1.0, trial=True)
    assert breaker.allows(1.0 + TRIAL_EVERY_S)
    breaker.succeed(1.0, trial=True)
    assert breaker.allows(1.0)


def test_requests_from_before_the_ejection_change_nothing_of_it() -> None:
    breaker = opened()
    breaker.succeed(1.0)
    breaker.fail(1.0)
    assert not breaker.allows(1.0)
    assert breaker.allows(FIRST_EJECTION_S)


def test_a_node_that_misses_its_checks_is_down_until_it_answers_one() -> None:
    breaker = Breaker()
    for _ in range(MISSED_CHECKS - 1):
        breaker.checked(0.0, healthy=False)
    assert breaker.allows(0.0)
    breaker.checked(0.0, healthy=False)
    assert breaker.state(1000.0) is BreakerState.DOWN
    assert not breaker.allows(1000.0)
    breaker.checked(1000.0, healthy=True)
    assert breaker.state(1000.0) is BreakerState.HALF_OPEN
    assert breaker.allows(1000.0)


def test_checks_missed_now_and_then_are_no_failure() -> None:
    breaker = Breaker()
    for _ in range(20):
        breaker.checked(0.0, healthy=False)
        breaker.checked(0.0, healthy=True)
    assert breaker.state(0.0) is BreakerState.CLOSED


def test_a_health_check_alone_does_not_close_what_requests_opened() -> None:
    breaker = opened()
    breaker.checked(0.5, healthy=True)
    assert not breaker.allows(0.5)


def test_a_node_that_answers_requests_is_not_down_however_slowly_it_is_asked() -> None:
    breaker = Breaker()
    for _ in range(MISSED_CHECKS * 3):
        breaker.checked(0.0, healthy=False)
        breaker.succeed(0.0)
    assert breaker.state(0.0) is BreakerState.CLOSED


def test_an_answer_that_was_under_way_brings_a_node_back_for_a_trial() -> None:
    breaker = Breaker()
    for _ in range(MISSED_CHECKS):
        breaker.checked(0.0, healthy=False)
    breaker.succeed(1.0)
    assert breaker.state(1.0) is BreakerState.HALF_OPEN
    assert breaker.allows(1.0)
