"""What one process counts: all requests since its place was first taken, and the newest ones as they are.

On the path a request costs two increments and its record put aside; everything else is reckoned when somebody asks.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypedDict
from uuid import UUID

import orjson

from gateway.records.shapes import RequestRecord

WINDOW: Final = timedelta(seconds=300)
BOUNDS_MS: Final = (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000)

_KEPT: Final = 5000
_MOST_TIMES: Final = 200
_MOST_ADAPTERS: Final = 100
_SERVER_ERROR: Final = 500
_TOO_MANY: Final = 429


class Adapter(NamedTuple):
    """One adapter's requests of the window; `ttft_ms` are those of the newest that got an answer."""

    tenant: str
    adapter: str
    requests: int
    failed: int
    ttft_ms: list[int]


class Figures(TypedDict):
    """A process's figures, such that those of several can be added up.

    `ended` are [path, status, kind of error, how many]; `first_byte` and `total` how many took up to each of BOUNDS_MS,
    then those that took longer, then the sum of all in ms. The rest is of the window.
    """

    ended: list[tuple[str, int, str, int]]
    first_byte: list[int]
    total: list[int]
    tiers: dict[str, int]
    adapters: list[Adapter]
    gauges: dict[str, float]
    breakers: dict[str, str]


class Counts:
    """The counters of this process; `before` are the figures of the one whose place it took."""

    def __init__(self, before: Figures | None = None) -> None:
        """Go on from there."""
        ended = [] if before is None else before["ended"]
        self._ended = Counter({(path, status, kind): count for path, status, kind, count in ended})
        self._first_byte = _no_times() if before is None else list(before["first_byte"])
        self._total = _no_times() if before is None else list(before["total"])
        self._newest: deque[RequestRecord] = deque(maxlen=_KEPT)

    def observe(self, record: RequestRecord) -> None:
        """A request has ended."""
        self._newest.append(record)
        key = (record.path, record.status, record.error_kind)
        self._ended[key] = self._ended.get(key, 0) + 1
        _add(self._total, record.total_ms)
        if record.ttft_ms:
            _add(self._first_byte, record.ttft_ms)

    def figures(
        self,
        *,
        now: datetime,
        adapter_of: Callable[[UUID], str | None],
        gauges: dict[str, float],
        breakers: dict[str, str],
    ) -> Figures:
        """What there is to say; `adapter_of` names a version's adapter, None if it isn't known any more."""
        window = [record for record in self._newest if record.at > now - WINDOW]
        return Figures(
            ended=[(*key, count) for key, count in self._ended.items()],
            first_byte=self._first_byte,
            total=self._total,
            tiers=dict(Counter(record.tier for record in window if record.tier)),
            adapters=_by_adapter(window, adapter_of),
            gauges=gauges,
            breakers=breakers,
        )


def added(all_figures: Iterable[Figures]) -> Figures:
    """The figures of all processes together; of a node's breaker, the worst that any of them has seen."""
    ended: Counter[tuple[str, int, str]] = Counter()
    tiers: Counter[str] = Counter()
    gauges: dict[str, float] = {}
    adapters: dict[tuple[str, str], Adapter] = {}
    breakers: dict[str, str] = {}
    first_byte, total = _no_times(), _no_times()
    for figures in all_figures:
        ended.update({(path, status, kind): count for path, status, kind, count in figures["ended"]})
        tiers.update(figures["tiers"])
        _add_gauges(gauges, figures["gauges"])
        first_byte = [one + other for one, other in zip(first_byte, figures["first_byte"], strict=True)]
        total = [one + other for one, other in zip(total, figures["total"], strict=True)]
        for adapter in figures["adapters"]:
            _join(adapters, adapter)
        for node, state in figures["breakers"].items():
            breakers[node] = max(breakers.get(node, ""), state, key=_SEVERITY.index)
    return Figures(
        ended=[(*key, count) for key, count in ended.items()],
        first_byte=first_byte,
        total=total,
        tiers=dict(tiers),
        adapters=list(adapters.values()),
        gauges=gauges,
        breakers=breakers,
    )


def _add_gauges(gauges: dict[str, float], more: dict[str, float]) -> None:
    for name, value in more.items():
        known = gauges.get(name, 0.0)
        gauges[name] = max(known, value) if name in _NOT_ADDED else known + value


# Of these the largest counts: an age, and a folder that all processes share.
_NOT_ADDED: Final = frozenset({"snapshot_age_seconds", "records_spooled_bytes"})
# From the least to the most severe; an empty one stands for not known.
_SEVERITY: Final = ("", "closed", "half_open", "open", "down")


def write_figures(figures: Figures) -> bytes:
    """The figures as they go on a page."""
    return orjson.dumps(figures, default=tuple)  # named tuples


def read_figures(page: bytes) -> Figures | None:
    """The figures on a page; None if there are none."""
    if not page:
        return None
    read = orjson.loads(page)
    # JSON has no tuples.
    read["ended"] = [tuple(ended) for ended in read["ended"]]
    read["adapters"] = [Adapter(*adapter) for adapter in read["adapters"]]
    figures: Figures = read
    return figures


def has_failed(record: RequestRecord) -> bool:
    """Whether it failed and not by its client's doing: faults of engines, broken answers, and being turned away."""
    is_broken = record.status < _TOO_MANY and bool(record.error_kind) and record.status // 100 == 2  # noqa: PLR2004
    return record.status >= _SERVER_ERROR or record.status == _TOO_MANY or is_broken


def _by_adapter(window: list[RequestRecord], adapter_of: Callable[[UUID], str | None]) -> list[Adapter]:
    found: dict[tuple[str, str], Adapter] = {}
    for record in reversed(window):
        name = None if record.version_id is None else adapter_of(record.version_id)
        if name is not None:
            times = [record.ttft_ms] if record.ttft_ms else []
            _join(found, Adapter(record.tenant, name, 1, int(has_failed(record)), times))
    return sorted(found.values(), key=lambda adapter: -adapter.requests)[:_MOST_ADAPTERS]


def _join(found: dict[tuple[str, str], Adapter], more: Adapter) -> None:
    key = (more.tenant, more.adapter)
    known = found.get(key)
    if known is None:
        found[key] = more._replace(ttft_ms=list(more.ttft_ms))
        return
    if len(known.ttft_ms) < _MOST_TIMES:
        known.ttft_ms.extend(more.ttft_ms)
    found[key] = known._replace(requests=known.requests + more.requests, failed=known.failed + more.failed)


def _no_times() -> list[int]:
    return [0] * (len(BOUNDS_MS) + 2)


def _add(times: list[int], took_ms: int) -> None:
    times[bisect_left(BOUNDS_MS, took_ms)] += 1
    times[-1] += took_ms
