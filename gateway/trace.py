"""What is learnt about one request while it's served; becomes its record at the end."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gateway.records import RequestRecord
from gateway.routing.resolve import Route
from gateway.upstream.answers import Usage


@dataclass(slots=True)
class Trace:
    """Facts and monotonic times of one request. `tier` is where the version was when the request came."""

    request_id: str
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    arrived: float = field(default_factory=time.monotonic)
    tenant: str = ""
    alias: str = ""
    route: Route | None = None
    node: str | None = None
    tier: str = ""
    stream: bool = False
    sent_at: float | None = None
    first_byte_at: float | None = None
    load_s: float = 0.0
    usage: Usage = field(default_factory=Usage)

    def mark_sent(self) -> None:
        """The request goes out to an engine now."""
        self.sent_at = time.monotonic()

    def mark_first_byte(self) -> None:
        """The first byte goes to the client now."""
        self.first_byte_at = time.monotonic()

    def record(self, *, status: int, error_kind: str) -> RequestRecord:
        """The record of the finished request."""
        now = time.monotonic()
        return RequestRecord(
            at=self.at,
            request_id=self.request_id,
            tenant=self.tenant,
            alias=self.alias,
            version_id=None if self.route is None else self.route.version.id,
            node=self.node,
            tier=self.tier,
            status=status,
            error_kind=error_kind,
            queue_ms=0 if self.sent_at is None else _ms(self.sent_at - self.arrived - self.load_s),
            load_ms=_ms(self.load_s),
            ttft_ms=0 if self.first_byte_at is None else _ms(self.first_byte_at - self.arrived),
            total_ms=_ms(now - self.arrived),
            prompt_tokens=self.usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens,
            stream=self.stream,
        )


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))
