import threading
import time
from functools import partial

import pytest

from client.parallel import Cancelled, CancelSwitch, run_all


def test_results_come_in_the_order_of_the_jobs() -> None:
    def job(number: int, _switch: CancelSwitch) -> int:
        time.sleep(0.02 / (number + 1))
        return number

    assert run_all([partial(job, number) for number in range(6)], workers=3) == list(range(6))


def test_no_jobs_give_no_results() -> None:
    assert run_all([], workers=2) == []


def test_the_first_failure_stops_the_others() -> None:
    stopped = threading.Event()

    def failing(_switch: CancelSwitch) -> None:
        raise ValueError("broken")

    def endless(switch: CancelSwitch) -> None:
        try:
            while True:
                switch.check()
                time.sleep(0.005)
        except Cancelled:
            stopped.set()
            raise

    with pytest.raises(ValueError, match="broken"):
        run_all([endless, failing], workers=2)
    assert stopped.is_set()


def test_after_a_failure_no_further_job_begins() -> None:
    begun: list[int] = []

    def job(number: int, _switch: CancelSwitch) -> None:
        begun.append(number)
        if number == 1:
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_all([partial(job, number) for number in range(5)], workers=1)
    assert begun == [0, 1]
