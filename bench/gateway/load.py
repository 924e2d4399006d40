"""``python -m bench.gateway.load``: connections that ask again as soon as they are answered, in a process of their own.

Reads a plan (``Plan`` as JSON) from standard input and writes what came of it (``Tally`` as JSON) to standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import cast

import httptools
import uvloop

_PATH = "/v1/chat/completions"
_OK = 200
_LONGEST_LOOK = 8192
WARM_UP_S = 0.3
# How long what was asked at the end may take, so that what it cost is for an answer too.
_LAST_ANSWERS_S = 3.0


@dataclass(frozen=True, slots=True)
class Target:
    """One model to ask for, by which key, and the text that a right answer holds."""

    model: str
    key: str
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``connections`` ask at ``host:port`` for ``seconds`` after a warm-up; the targets take turns.

    They begin one after the other over ``begin_over_s`` seconds: clients of different people aren't in step.
    """

    host: str
    port: int
    connections: int
    seconds: float
    stream: bool
    targets: list[Target]
    begin_over_s: float = 0.0


@dataclass(slots=True)
class Tally:
    """What came of it. Times in nanoseconds: ``took`` until the answer's end, ``first`` until its body's first byte.

    ``answers`` are those that are counted; ``served`` also those of the warm-up and the last ones. ``failed``: when
    requests began that failed (of ``time.perf_counter_ns``, which all processes of a machine share).
    """

    answers: int = 0
    served: int = 0
    seconds: float = 0.0
    wrong: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    took: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)


class Asker(asyncio.Protocol):
    """One connection."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._is_waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's are no subclass of it.
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)
        self._ask()

    def _ask(self) -> None:
        if self._run.is_over:
            self._transport.close()
            return
        request, self._proof = self._run.next_request()
        self._first, self._seen = 0, b""
        self._is_waiting = True
        self._began = time.perf_counter_ns()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if len(self._seen) < _LONGEST_LOOK:
            self._seen += data
        self._parser.feed_data(data)

    def on_body(self, _body: bytes) -> None:
        if not self._first:
            self._first = time.perf_counter_ns()

    def on_message_complete(self) -> None:
        now = time.perf_counter_ns()
        self._is_waiting = False
        if self._parser.get_status_code() != _OK:
            self._run.failed(str(self._parser.get_status_code()), self._began)
        else:
            self._run.answered(self._began, self._first, now, is_right=self._proof in self._seen)
        if self._parser.should_keep_alive():
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        if self._is_waiting:
            self._run.failed("lost", self._began)
        self._run.lost()


class Run:
    """All connections of one plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._requests = [_request(target, stream=plan.stream) for target in plan.targets]
        self._turn = count()
        self._errors: Counter[str] = Counter()
        self._counts_from = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = 0
        self._all_closed = asyncio.Event()
        self.is_over = False
        self.tally = Tally()

    def next_request(self) -> tuple[bytes, bytes]:
        return self._requests[next(self._turn) % len(self._requests)]

    def answered(self, began: int, first: int, ended: int, *, is_right: bool) -> None:
        tally = self.tally
        tally.wrong += not is_right
        tally.served += 1
        if self._counts_from and began >= self._counts_from and not self.is_over:
            tally.answers += 1
            tally.took.append(ended - began)
            tally.first.append(first - began)

    def failed(self, kind: str, began: int) -> None:
        if not self.is_over:
            self._errors[kind] += 1
            self.tally.failed.append(began)

    def lost(self) -> None:
        self._open -= 1
        if self.is_over:
            if not self._open:
                self._all_closed.set()
        else:
            task = asyncio.ensure_future(self._connect())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def run(self) -> Tally:
        plan = self._plan
        gaps = (plan.begin_over_s * number / plan.connections for number in range(plan.connections))
        await asyncio.gather(*(self._connect(after_s=gap) for gap in gaps))
        await asyncio.sleep(WARM_UP_S)
        self._counts_from = began = time.perf_counter_ns()
        await asyncio.sleep(self._plan.seconds)
        self.is_over = True
        self.tally.seconds = (time.perf_counter_ns() - began) / 1e9
        self.tally.errors = dict(self._errors)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_ANSWERS_S):
                await self._all_closed.wait()
        return self.tally

    async def _connect(self, *, after_s: float = 0.0) -> None:
        await asyncio.sleep(after_s)
        try:
            await asyncio.get_running_loop().create_connection(lambda: Asker(self), self._plan.host, self._plan.port)
            self._open += 1
        except OSError:
            self.failed("refused", time.perf_counter_ns())


def _request(target: Target, *, stream: bool) -> tuple[bytes, bytes]:
    body = json.dumps(
        {
            "model": target.model,
            "messages": [
                {"role": "system", "content": "You are a careful assistant."},
                {"role": "user", "content": f"{target.proof[:24]}: say in one sentence what a release manager does."},
            ],
            "max_tokens": 64,
            "temperature": 0,
            **({"stream": True} if stream else {}),
        }
    ).encode()
    head = (
        f"POST {_PATH} HTTP/1.1\r\nhost: gateway\r\nuser-agent: bench\r\naccept: application/json\r\n"
        f"authorization: Bearer {target.key}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body, target.proof.encode()


def main() -> None:
    told = json.load(sys.stdin)
    plan = Plan(**{**told, "targets": [Target(**target) for target in told["targets"]]})
    gc.freeze()
    gc.disable()
    json.dump(dataclasses.asdict(uvloop.run(Run(plan).run())), sys.stdout)


if __name__ == "__main__":
    main()
