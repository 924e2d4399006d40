"""A gateway's end of the pipe to the process that sends its spans."""

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from gateway.records.shapes import RequestRecord
from gateway.spans.context import begin_spans
from gateway.spans.lines import pack
from gateway.trace import Trace

_log = logging.getLogger(__name__)

# Requests that may wait, here and with the sender together; what comes beyond is dropped.
_BOUND: Final = 20_000
_EVERY_S: Final = 0.25
_PAUSE_S: Final = 5.0
_OURS: Final = "LOREKEEPER_"


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where spans go: the OTLP/HTTP address, headers as `key=value,…`, and which share of new traces is kept."""

    url: str
    headers: str = field(default="", repr=False)
    share: float = 1.0


class Spans:
    """Takes requests that have ended; never waits for whoever receives their spans.

    `dropped` counts requests whose spans are lost, `sent` those that were received.
    """

    def __init__(self, receiver: Receiver, *, adapter_of: Callable[[UUID], str | None], bound: int = _BOUND) -> None:
        """`adapter_of` names a version's adapter, None if it isn't known any more."""
        self._receiver = receiver
        self._adapter_of = adapter_of
        self._bound = bound
        self._lines: list[bytes] = []
        self._on_the_way = 0
        self._child: Process | None = None
        self.dropped = 0
        self.sent = 0

    @property
    def pending(self) -> int:
        """Requests that were taken, and neither sent nor lost."""
        return len(self._lines) + self._on_the_way

    def begin(self, trace: Trace, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Give the request its place in a trace; what goes on to the engine in place of its headers."""
        trace.span = begin_spans(headers, share=self._receiver.share)
        return headers if trace.span is None else {**headers, "traceparent": trace.span.traceparent}

    def end(self, trace: Trace, record: RequestRecord, *, route: str) -> None:
        """The request has ended; it is dropped where too many wait."""
        if trace.span is None:
            return
        if self.pending >= self._bound:
            self.dropped += 1
            return
        adapter = None if record.version_id is None else self._adapter_of(record.version_id)
        self._lines.append(pack(trace.span, trace, record, route=route, adapter=adapter or ""))

    async def run(self) -> None:
        """Keep a sender and hand it what has come, until cancelled; the sender lives on until `close`."""
        while True:
            try:
                self._child = await self._start()
                await self._keep(self._child)
            except OSError as error:
                _log.error("no process that sends spans could be started: %s", error)
            else:
                _log.error("the process that sends spans has ended; it is started again")
            self._lose()
            await asyncio.sleep(_PAUSE_S)

    async def close(self, *, timeout_s: float) -> None:
        """Send what is left, for a shutdown; what takes longer than `timeout_s` is lost."""
        child, self._child = self._child, None
        if child is None or child.stdin is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                self._hand_over(child)
                child.stdin.close()
                await self._listen(child)
                await child.wait()
        except TimeoutError:
            _log.warning("the spans of %d requests are lost", self.pending)
        finally:
            with suppress(ProcessLookupError):
                child.kill()
            self._lose()

    async def _start(self) -> Process:
        # It needs to know nothing else of ours, least of all the secrets.
        others = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        receiver = {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": self._receiver.url,
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS": self._receiver.headers,
        }
        # In a session of its own: a signal from a terminal is for the gateway, which sends the last ones then.
        argv = (sys.executable, "-m", "gateway.spans")
        return await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, env={**others, **receiver}, start_new_session=True
        )

    async def _keep(self, child: Process) -> None:
        """Feed it until it ends."""
        feeding = asyncio.ensure_future(self._feed(child))
        try:
            await self._listen(child)
        finally:
            feeding.cancel()

    async def _feed(self, child: Process) -> None:
        while True:
            self._hand_over(child)
            await asyncio.sleep(_EVERY_S)

    def _hand_over(self, child: Process) -> None:
        """What doesn't fit into the pipe waits in memory, within the bound: `pending` counts it until it's answered."""
        if self._lines and child.stdin is not None and not child.stdin.is_closing():
            self._on_the_way += len(self._lines)
            child.stdin.write(b"".join(self._lines))
            self._lines.clear()

    async def _listen(self, child: Process) -> None:
        """Until the sender ends: how many it has sent, or failed to."""
        if child.stdout is None:
            return
        async for line in child.stdout:
            what, count = line.split()
            self._on_the_way -= int(count)
            if what == b"sent":
                self.sent += int(count)
            else:
                self.dropped += int(count)

    def _lose(self) -> None:
        self.dropped += self._on_the_way
        self._on_the_way = 0
