"""What is put aside in a round of the loop, and what goes out when."""

from typing import TYPE_CHECKING, cast

import pytest

from gateway.wire.outbox import Outbox, Sender
from tests.unit.gateway.rounds import Rounds

if TYPE_CHECKING:
    import asyncio

MUCH = b"x" * 70_000


class Wire:
    """A transport that notes what is written, or takes nothing."""

    def __init__(self, *, is_broken: bool = False) -> None:
        self.written: list[bytes] = []
        self.is_closed = self.was_aborted = False
        self._is_broken = is_broken

    def write(self, data: bytes) -> None:
        if self._is_broken:
            raise RuntimeError("the handle is closed")
        self.written.append(bytes(data))

    def writelines(self, parts: list[bytes]) -> None:
        self.write(b"".join(parts))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = self.was_aborted = True


@pytest.fixture
def rounds() -> Rounds:
    return Rounds()


@pytest.fixture
def outbox(rounds: Rounds) -> Outbox:
    return Outbox(rounds.loop, most=3)


def a_sender(outbox: Outbox, *, is_broken: bool = False) -> tuple[Sender, Wire]:
    sender, wire = Sender(outbox), Wire(is_broken=is_broken)
    sender._transport = cast("asyncio.Transport", wire)
    return sender, wire


def test_what_several_say_in_a_round_goes_out_at_its_end_and_each_ones_at_once(outbox: Outbox, rounds: Rounds) -> None:
    (one, its), (other, others) = a_sender(outbox), a_sender(outbox)
    for sender, data in ((one, b"a"), (other, b"b"), (one, b"c")):
        sender.put(data)
    assert its.written == others.written == []
    rounds.end_round()
    assert (its.written, others.written) == ([b"ac"], [b"b"])


def test_after_a_round_with_a_single_one_nobody_waits_until_it_is_tried_again(outbox: Outbox, rounds: Rounds) -> None:
    (one, its), (other, others) = a_sender(outbox), a_sender(outbox)
    one.put(b"a")
    rounds.end_round()
    count = 0
    while len(its.written) == count + 1:
        one.put(b"b")
        count += 1
    assert count > 2
    other.put(b"c")
    assert others.written == []
    rounds.end_round()
    assert others.written == [b"c"]
    one.put(b"d")
    assert its.written[-1] == b"b"


def test_no_more_than_a_few_wait_for_each_other(outbox: Outbox, rounds: Rounds) -> None:
    senders = [a_sender(outbox) for _ in range(4)]
    for number, (sender, _wire) in enumerate(senders):
        sender.put(b"%d" % number)
    assert [wire.written for _sender, wire in senders] == [[b"0"], [b"1"], [b"2"], []]
    rounds.end_round()
    assert senders[3][1].written == [b"3"]
    # There was more than the one in that round.
    senders[0][0].put(b"4")
    assert senders[0][1].written == [b"0"]


def test_much_goes_out_at_once_and_nothing_of_it_twice(outbox: Outbox, rounds: Rounds) -> None:
    (one, its), (other, others) = a_sender(outbox), a_sender(outbox)
    one.put(b"a")
    other.put(b"b")
    one.put(MUCH)
    assert its.written == [b"a" + MUCH]
    rounds.end_round()
    assert (its.written, others.written) == ([b"a" + MUCH], [b"b"])


def test_a_close_comes_after_what_was_put_aside_and_an_end_at_once_before_it(outbox: Outbox, rounds: Rounds) -> None:
    (closed, its), (aborted, others) = a_sender(outbox), a_sender(outbox)
    for sender in (closed, aborted):
        sender.put(b"a")
    closed.close()
    aborted.abort()
    assert (its.written, its.is_closed, its.was_aborted) == ([b"a"], True, False)
    assert others.was_aborted
    rounds.end_round()
    assert (its.written, others.written) == ([b"a"], [])


def test_nothing_is_written_to_a_connection_that_closes(outbox: Outbox, rounds: Rounds) -> None:
    (one, its), (other, others) = a_sender(outbox), a_sender(outbox)
    one.put(b"a")
    other.put(b"b")
    its.is_closed = True
    rounds.end_round()
    assert (its.written, others.written) == ([], [b"b"])


def test_a_connection_that_takes_nothing_is_closed_and_the_others_get_theirs(outbox: Outbox, rounds: Rounds) -> None:
    (broken, its), (other, others) = a_sender(outbox, is_broken=True), a_sender(outbox)
    broken.put(b"a")
    other.put(b"b")
    rounds.end_round()
    assert (its.was_aborted, others.written) == (True, [b"b"])
