"""The stub engine and the client of the gateway's bench, without sockets."""

import asyncio

import pytest

from bench.gateway.load import Plan, Run, Target
from bench.gateway.stub import TOKENS, Engine, Http, Mode

_BODY = b'{"model": "tone-v1", "messages": []}'
_STREAMED = b'{"model": "tone-v1", "stream": true}'


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.is_closed = True


class _Clock:
    """A loop whose timers run when they are told to."""

    def __init__(self) -> None:
        self.due: list[object] = []

    def time(self) -> float:
        return 0.0

    def call_at(self, _when: float, call: object) -> None:
        self.due.append(call)

    def run(self) -> None:
        while self.due:
            self.due.pop()()  # type: ignore[operator]


def _answer(mode: Mode, body: bytes = _BODY, *, path: str = "/v1/chat/completions") -> _Transport:
    transport, clock = _Transport(), _Clock()
    http = Http(Engine(mode), clock)  # type: ignore[arg-type]
    http.connection_made(transport)
    http.data_received(b"POST %b HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (path.encode(), len(body), body))
    clock.run()
    return transport


def test_an_answer_names_the_model_and_says_it_backwards() -> None:
    sent = _answer(Mode.SOUND).sent
    assert b'"model":"tone-v1"' in sent
    assert b'"content":"1v-enot"' in sent


def test_a_stream_has_its_tokens_and_its_end() -> None:
    sent = _answer(Mode.SOUND, _STREAMED).sent
    assert sent.count(b"data: {") == TOKENS
    assert sent.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    ("mode", "has", "is_closed"),
    [
        (Mode.HANG, b"", False),
        (Mode.DROP, b"", True),
        (Mode.FAIL, b"HTTP/1.1 500", False),
        (Mode.LIE, b'"model":"somebody-else"', False),
        (Mode.HALF, b"content-length", True),
    ],
)
def test_an_engine_misbehaves_as_it_was_told(mode: Mode, has: bytes, is_closed: bool) -> None:
    transport = _answer(mode)
    assert has in transport.sent
    assert bool(has) is bool(transport.sent)
    assert transport.is_closed is is_closed


def test_half_a_stream_ends_with_its_connection() -> None:
    transport = _answer(Mode.HALF, _STREAMED)
    assert transport.is_closed
    assert b"[DONE]" not in transport.sent


def test_a_hung_engine_is_not_healthy_either() -> None:
    assert _answer(Mode.HANG, path="/health").sent == b""
    assert _answer(Mode.FAIL, path="/health").sent.startswith(b"HTTP/1.1 200")


def test_an_answer_without_the_proof_counts_as_wrong() -> None:
    plan = Plan(host="", port=0, connections=1, seconds=1, stream=False, targets=[Target("tone-v1", "key", "1v-enot")])

    async def wrong_ones() -> int:
        run = Run(plan)
        run.answered(0, 1, 2, is_right=True)
        run.answered(0, 1, 2, is_right=False)
        return run.tally.wrong

    assert asyncio.run(wrong_ones()) == 1
