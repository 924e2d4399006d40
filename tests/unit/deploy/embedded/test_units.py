import signal

from deploy.embedded.units import backoff, describe_end


def test_the_first_new_start_comes_at_once_and_later_ones_ever_more_slowly() -> None:
    waits = [backoff(failures) for failures in range(1, 10)]
    assert waits[0] <= 0.1
    assert waits == sorted(waits)
    assert waits[-1] == waits[-2] == 10.0


def test_the_end_of_a_process_is_said_in_words() -> None:
    assert describe_end(-signal.SIGKILL) == "signal 9"
    assert describe_end(1) == "exit status 1"
