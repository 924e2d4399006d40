from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from workers.node.errors import QueueFullError, SupersededError
from workers.node.jobs.turn import Turn


def test_one_at_a_time_in_the_order_in_which_they_came() -> None:
    turn, order = Turn(width=1, queue=8), list[int]()

    def work(number: int, begun: Event) -> None:
        begun.set()
        with turn.take():
            order.append(number)

    with ThreadPoolExecutor(3) as pool, turn.take():
        for number in range(3):
            begun = Event()
            pool.submit(work, number, begun)
            assert begun.wait(5)
            while len(turn._waiting) <= number:
                pass
        assert order == []
    assert order == [0, 1, 2]


def test_beyond_its_bound_the_queue_refuses_at_once() -> None:
    turn = Turn(width=1, queue=0)
    with turn.take(), pytest.raises(QueueFullError, match="wait for the engine already") as caught, turn.take():
        pass
    assert caught.value.error_class == "capacity"
    with turn.take():
        pass


def test_who_waits_for_nothing_any_more_gives_up_his_place() -> None:
    turn = Turn(width=1, queue=1)
    with turn.take(), pytest.raises(SupersededError), turn.take(is_void=lambda: True):
        pass
    with turn.take():
        pass


def test_several_go_together_where_the_engine_is_wide() -> None:
    turn = Turn(width=2, queue=0)
    with turn.take(), turn.take(), pytest.raises(QueueFullError), turn.take():
        pass


def test_a_check_takes_the_turn_only_when_it_is_free() -> None:
    turn = Turn(width=1, queue=1)
    with turn.try_take() as mine, turn.try_take() as again:
        assert mine
        assert not again
    with turn.take(), turn.try_take() as mine:
        assert not mine
