"""Whatever bytes an engine sends and however they are cut: an answer is read right or not at all, and nothing stays."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import EngineFault
from gateway.upstream.lane import Exchange, Lane, StaleLane
from gateway.wire.outbox import Outbox
from tests.unit.gateway.rounds import Rounds

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
REQUEST = b"POST / HTTP/1.1\r\n\r\n"
MOST = 1_000_000


class Wire:
    """The transport under a lane, and its owner."""

    def __init__(self) -> None:
        self.rounds = Rounds()
        self.outbox = Outbox(self.rounds.loop, most=64)
        self.sent = b""
        self.is_closed = False
        self.reusable: list[bool] = []

    def write(self, data: bytes) -> None:
        self.sent += data

    def abort(self) -> None:
        self.is_closed = True

    close = abort

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading

    def released(self, lane: Lane, *, reusable: bool) -> None:
        self.reusable.append(reusable)

    def lost(self, lane: Lane) -> None:
        pass


def begun(wire: Wire, lane: Lane) -> Exchange:
    """An exchange whose request has been sent."""
    exchange = lane.begin(REQUEST, b"")
    wire.rounds.end_round()
    return exchange


def ended(exchange: Exchange) -> bytes:
    """The body of an answer that has ended, which nobody has to wait for."""
    with pytest.raises(StopIteration) as end:
        exchange.whole(MOST).send(None)
    body: bytes = end.value.value
    return body


def heard(wire: Wire, lane: Lane, pieces: list[bytes]) -> bytes | None:
    """What one call on the lane gets when these pieces arrive and then the connection ends; None if it fails."""
    exchange = begun(wire, lane)
    for piece in pieces:
        if not wire.is_closed:
            lane.data_received(piece)
    if not exchange.is_ended:
        lane.eof_received()
        lane.connection_lost(None)
    assert exchange.is_ended
    try:
        return ended(exchange)
    except EngineFault:
        return None


def a_lane(wire: Wire | None = None) -> tuple[Wire, Lane]:
    wire = wire or Wire()
    lane = Lane(wire, None, wire.rounds.loop, wire.outbox)  # nobody waits here
    lane.connection_made(wire)  # type: ignore[arg-type]  # all of a transport that a lane uses
    return wire, lane


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A sound answer as it's sent, and its body."""
    parts = draw(st.lists(st.binary(min_size=1, max_size=40), max_size=6))
    body = b"".join(parts)
    early = b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n" * draw(st.integers(0, 2))
    if draw(st.booleans()):
        return early + HEAD + b"content-length: %d\r\n\r\n" % len(body) + body, body
    extension = draw(st.sampled_from([b"", b";a=b"]))
    chunks = b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts)
    trailer = draw(st.sampled_from([b"", b"x-trailer: 1\r\n"]))
    return early + HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + trailer + b"\r\n", body


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in at)})
    return [data[begin:end] for begin, end in pairwise(places)]


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


def sound_answers_are_read_whole(first: tuple[bytes, bytes], second: tuple[bytes, bytes], cuts: list[int]) -> None:
    wire, lane = a_lane()
    for said, body in (first, second):
        assert heard(wire, lane, cut(said, cuts)) == body
    assert wire.reusable == [True, True]
    assert not wire.is_closed


def half_an_answer_is_never_a_whole_one(said: tuple[bytes, bytes], cuts: list[int], end: int) -> None:
    wire, lane = a_lane()
    answer = said[0][: end % len(said[0])]
    assert heard(wire, lane, cut(answer, cuts)) is None
    assert wire.reusable == [False]


def what_follows_an_answer_is_dropped(said: tuple[bytes, bytes], cuts: list[int], junk: bytes) -> None:
    wire, lane = a_lane()
    exchange = begun(wire, lane)
    for piece in cut(said[0] + junk, cuts):
        if not wire.is_closed:
            lane.data_received(piece)
    assert exchange.is_ended
    assert ended(exchange) == said[1]
    # llhttp skips line ends between messages, as RFC 9112 has it; whatever else came has ended the connection.
    assert wire.is_closed or not junk.strip(b"\r\n")


def what_comes_before_the_request_has_left_is_no_answer_to_it(first: tuple[bytes, bytes], early: bytes) -> None:
    wire, lane = a_lane()
    # With another one in the same round: what goes out alone isn't put aside the next time.
    lane.begin(REQUEST, b"")
    a_lane(wire)[1].begin(REQUEST, b"")
    wire.rounds.end_round()
    lane.data_received(first[0])
    exchange = lane.begin(REQUEST, b"")
    lane.data_received(early)
    assert wire.is_closed
    lane.connection_lost(None)
    with pytest.raises(StaleLane):
        exchange.whole(MOST).send(None)
    wire.rounds.end_round()
    assert wire.sent == REQUEST * 2


MANGLED = st.one_of(
    st.binary(max_size=200),
    st.tuples(answers(), st.integers(0, 10_000), st.binary(max_size=6), st.integers(0, 6)).map(
        lambda given: (
            given[0][0][: given[1] % len(given[0][0])]
            + given[2]
            + given[0][0][given[1] % len(given[0][0]) + given[3] :]
        )
    ),
)


def mangled_bytes_end_the_call(said: bytes, cuts: list[int]) -> None:
    wire, lane = a_lane()
    heard(wire, lane, cut(said, cuts))
    assert len(wire.reusable) == 1
    assert lane.exchange is None
    assert lane.is_usable == (wire.reusable == [True] and not wire.is_closed)


EARLY = st.one_of(st.binary(min_size=1, max_size=60), answers().map(lambda answer: answer[0]))

PROMISES: list[tuple[Callable[..., None], Mapping[str, st.SearchStrategy[object]]]] = [
    (sound_answers_are_read_whole, {"first": answers(), "second": answers(), "cuts": CUTS}),
    (half_an_answer_is_never_a_whole_one, {"said": answers(), "cuts": CUTS, "end": st.integers(0, 10_000)}),
    (what_follows_an_answer_is_dropped, {"said": answers(), "cuts": CUTS, "junk": st.binary(min_size=1, max_size=60)}),
    (what_comes_before_the_request_has_left_is_no_answer_to_it, {"first": answers(), "early": EARLY}),
    (mangled_bytes_end_the_call, {"said": MANGLED, "cuts": CUTS}),
]


@pytest.mark.parametrize("examples", [15, pytest.param(1000, marks=pytest.mark.e2e)])
@pytest.mark.parametrize(("promise", "given_facts"), PROMISES, ids=[promise.__name__ for promise, _ in PROMISES])
def test_any_bytes_cut_in_any_way_give_the_answer_or_none(
    promise: Callable[..., None], given_facts: Mapping[str, st.SearchStrategy[object]], examples: int
) -> None:
    settings(max_examples=examples)(given(**given_facts)(promise))()
