"""What tenants used, and requests of the past as a trace."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from client.decoding import decode
from client.transport import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from client.transport import Transport

By = Literal["alias", "version", "day"]


@dataclass(frozen=True, slots=True)
class UsageFigures:
    """Figures of some requests; `engine_ms` is what they cost, `name` the alias, version or day that they were for.

    `tiers` counts where the versions were when requests came, `ttft_ms` are percentiles of the time to the first byte.
    """

    requests: int
    failed: int
    fallbacks: int
    prompt_tokens: int
    completion_tokens: int
    engine_ms: int
    name: str = ""
    tiers: dict[str, int] = field(default_factory=dict)
    gpu_hit_rate: int | float | None = None
    ttft_ms: dict[str, int] | None = None
    shadow_requests: int = 0
    shadow_engine_ms: int = 0


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """What a tenant used between two times; `left_out` is how many smaller groups there are."""

    tenant: str
    since: str
    until: str
    by: str
    total: UsageFigures
    groups: tuple[UsageFigures, ...] = ()
    left_out: int = 0


class Usage:
    """Calls for what request records say."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def of(
        self, tenant: str, *, by: By = "alias", since: datetime | None = None, until: datetime | None = None
    ) -> TenantUsage:
        """Return what the tenant used: without `until` up to now, without `since` in the day before that."""
        params = {"by": by, **_span(since, until)}
        return decode(TenantUsage, self._transport.call("GET", path_of("tenants", tenant, "usage"), params=params))

    @contextmanager
    def trace(
        self, *, base_model: str | None = None, since: datetime | None = None, until: datetime | None = None
    ) -> Iterator[Iterator[str]]:
        """Open the requests of that time as lines of CSV, for `lorekeeper replay`; for platform admins."""
        params = {} if base_model is None else {"base_model": base_model}
        with self._transport.lines(path_of("request-trace"), params={**params, **_span(since, until)}) as lines:
            yield lines


def _span(since: datetime | None, until: datetime | None) -> dict[str, str]:
    given = {"since": since, "until": until}
    return {name: at.isoformat() for name, at in given.items() if at is not None}
