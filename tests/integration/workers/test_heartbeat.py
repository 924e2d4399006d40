from threading import Event

import pytest
from django.db import OperationalError

from workers.jobs.heartbeat import heartbeat


def test_a_long_step_is_heard_again_and_again_and_a_database_that_is_away_ends_nothing() -> None:
    heard: list[int] = []
    often = Event()

    def alive() -> None:
        heard.append(1)
        if len(heard) == 3:
            often.set()
        raise OperationalError("away")

    with heartbeat(alive, every_s=0.001):
        assert often.wait(10)


def test_nothing_is_said_any_more_after_a_failure() -> None:
    heard: list[int] = []
    with pytest.raises(MemoryError), heartbeat(lambda: heard.append(1), every_s=60):
        raise MemoryError
    assert heard == []
