from gateway.path.hedging import FirstBytes

POOL, OTHER = "a" * 64, "b" * 64


def test_nothing_is_said_of_the_slowest_before_there_are_enough_answers() -> None:
    times = FirstBytes(0.95)
    for _answer in range(49):
        times.observe(POOL, 0.1, stream=True)
    assert times.usual_s(POOL, stream=True) is None
    times.observe(POOL, 0.1, stream=True)
    assert times.usual_s(POOL, stream=True) == 0.1


def test_a_percentile_is_that_of_the_pools_own_answers_of_the_same_kind() -> None:
    times = FirstBytes(0.9)
    for number in range(100):
        times.observe(POOL, number / 100, stream=True)
        times.observe(POOL, 10.0, stream=False)
    usual = times.usual_s(POOL, stream=True)
    assert usual is not None
    assert 0.7 <= usual <= 0.9
    assert times.usual_s(POOL, stream=False) == 10.0
    assert times.usual_s(OTHER, stream=True) is None


def test_what_was_usual_is_forgotten_as_newer_answers_come() -> None:
    times = FirstBytes(0.95)
    for took_s in [0.1] * 400 + [2.0] * 400:
        times.observe(POOL, took_s, stream=True)
    assert times.usual_s(POOL, stream=True) == 2.0
