from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest

from workers.node.errors import SupersededError
from workers.node.jobs.lanes import Lanes

NAME = "lk-a"


@contextmanager
def inside(lanes: Lanes, *, generation: int, act: str = "warm") -> Iterator[Event]:
    """A command that works in its lane in a thread of its own until the event is set."""
    entered, leave = Event(), Event()

    def work() -> None:
        with lanes.enter(NAME, generation=generation, act=act, outranks=True):
            entered.set()
            leave.wait(5)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work)
        assert entered.wait(5)
        try:
            yield leave
        finally:
            leave.set()


def waiting(pool: ThreadPoolExecutor, lanes: Lanes, *, generation: int, outranks: bool = True) -> "Future[bool]":
    """Whether a command that has to wait gets the right to work in the end."""
    begun = Event()

    def work() -> bool:
        begun.set()
        with lanes.enter(NAME, generation=generation, act="evict", outranks=outranks) as right:
            return right is not None

    future = pool.submit(work)
    assert begun.wait(5)
    return future


def test_commands_for_one_name_follow_one_another() -> None:
    lanes = Lanes()
    with ThreadPoolExecutor(1) as pool:
        with inside(lanes, generation=1):
            second = waiting(pool, lanes, generation=2)
            assert not second.done()
        assert second.result(5)
    assert not lanes.count()


def test_commands_for_different_names_do_not_wait_for_each_other() -> None:
    lanes = Lanes()
    with (
        lanes.enter("lk-a", generation=1, act="warm", outranks=True) as one,
        lanes.enter("lk-b", generation=1, act="warm", outranks=True) as other,
    ):
        assert one is not None
        assert other is not None


def test_the_same_command_delivered_twice_is_done_once() -> None:
    lanes = Lanes()
    with (
        lanes.enter(NAME, generation=1, act="warm", outranks=True),
        lanes.enter(NAME, generation=1, act="warm", outranks=True) as again,
    ):
        assert again is None


def test_a_newer_command_makes_the_one_in_work_give_way() -> None:
    lanes = Lanes()
    with ThreadPoolExecutor(1) as pool:
        with lanes.enter(NAME, generation=1, act="warm", outranks=True) as right:
            assert right is not None
            right.check()
            newer = waiting(pool, lanes, generation=2)
            while not right.is_void():
                assert not newer.done()
            with pytest.raises(SupersededError):
                right.check()
        assert newer.result(5)


def test_of_those_that_wait_only_the_newest_works() -> None:
    lanes = Lanes()
    with ThreadPoolExecutor(2) as pool:
        with inside(lanes, generation=1):
            older = waiting(pool, lanes, generation=2)
            newest = waiting(pool, lanes, generation=3)
            assert older.result(5) is False
        assert newest.result(5)


def test_a_command_without_a_grant_makes_nobody_give_way() -> None:
    lanes = Lanes()
    with ThreadPoolExecutor(1) as pool:
        with lanes.enter(NAME, generation=1, act="warm", outranks=True) as right:
            forged = waiting(pool, lanes, generation=2**62, outranks=False)
            assert right is not None
            assert not right.is_void()
        assert forged.result(5)


def test_a_lane_is_held_only_when_nobody_works_or_waits_there() -> None:
    lanes = Lanes()
    with lanes.enter(NAME, generation=1, act="warm", outranks=True), lanes.try_hold(NAME) as mine:
        assert not mine
    with lanes.try_hold(NAME) as mine, lanes.try_hold(NAME) as again:
        assert mine
        assert not again
    assert not lanes.count()


def test_a_command_waits_for_who_holds_its_lane() -> None:
    lanes = Lanes()
    with ThreadPoolExecutor(1) as pool:
        with lanes.try_hold(NAME):
            command = waiting(pool, lanes, generation=1)
            assert not command.done()
        assert command.result(5)


def test_a_look_knows_the_commands_that_were_there_and_those_that_came_later() -> None:
    lanes = Lanes()
    with lanes.enter("lk-a", generation=1, act="warm", outranks=True):
        first = lanes.look()
    second = lanes.look()
    with lanes.enter("lk-b", generation=1, act="warm", outranks=True):
        pass
    assert first.names == {"lk-a", "lk-b"}
    assert second.names == {"lk-b"}


def test_an_error_leaves_the_lane_free() -> None:
    lanes = Lanes()
    with pytest.raises(ZeroDivisionError), lanes.enter(NAME, generation=1, act="warm", outranks=True):
        raise ZeroDivisionError
    assert not lanes.count()
