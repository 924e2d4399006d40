"""What is learnt about one request while it's served; becomes its record at the end."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gateway.records.shapes import RequestRecord
from gateway.upstream.answers import Seen, Usage

if TYPE_CHECKING:
    from uuid import UUID

    from gateway.spans.context import SpanContext

_NO_USAGE = Usage()


class Trace:
    """Facts and monotonic times of one request.

    `tier` is where the version was when the request came, `version_id` the version that answered, or would have;
    `path`, `side` and `fallback` as in the record; `span` where it's traced for others. `sent_at` and `last_engine_s`
    are of the last try; `engine_s` is all time in engines. `seen` is what of its answer has gone on.
    """

    # Most of it is never set: a request pays for what it has.
    alias: str = ""
    tier: str = ""
    side: str = ""
    fallback: str = ""
    version_id: "UUID | None" = None
    node: str | None = None
    span: "SpanContext | None" = None
    stream: bool = False
    retries: int = 0
    seen: Seen | None = None
    sent_at: float = 0.0
    first_byte_at: float = 0.0
    load_s: float = 0.0
    engine_s: float = 0.0
    last_engine_s: float = 0.0

    def __init__(self, request_id: str, *, tenant: str = "", path: str = "") -> None:
        """Begin now."""
        self.request_id = request_id
        self.at = datetime.now(UTC)
        self.arrived = time.monotonic()
        self.tenant = tenant
        self.path = path
        self.usage = _NO_USAGE

    @property
    def pieces(self) -> int:
        """How many pieces of the answer have gone on, if it's a stream."""
        return 0 if self.seen is None else self.seen.events()

    def mark_sent(self) -> None:
        """The request goes out to an engine now."""
        self.sent_at = time.monotonic()

    def mark_first_byte(self) -> None:
        """The first byte goes to the client now."""
        self.first_byte_at = time.monotonic()

    def mark_answered(self) -> None:
        """The engine has sent its last byte, or failed."""
        self.last_engine_s = time.monotonic() - self.sent_at
        self.engine_s += self.last_engine_s

    def record(self, *, status: int, error_kind: str) -> RequestRecord:
        """The record of the finished request."""
        arrived, usage = self.arrived, self.usage
        return RequestRecord(
            self.at,
            self.request_id,
            self.tenant,
            self.alias,
            self.version_id,
            self.node,
            self.tier,
            status,
            error_kind,
            _ms(self.sent_at - arrived - self.load_s) if self.sent_at else 0,
            _ms(self.load_s) if self.load_s else 0,
            _ms(self.first_byte_at - arrived) if self.first_byte_at else 0,
            _ms(time.monotonic() - arrived),
            usage.prompt_tokens,
            usage.completion_tokens,
            self.stream,
            self.path,
            self.side,
            False,
            self.fallback,
            self.retries,
            _ms(self.engine_s),
        )


def _ms(seconds: float) -> int:
    return int(seconds * 1000 + 0.5) if seconds > 0 else 0
