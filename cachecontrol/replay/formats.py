"""Traces from what they come in; each reader takes an open file and never touches the disk itself.

- Arrays (``.npz``): ``t`` s, ``obj``, and by object ``size`` MiB, ``cost`` ms, ``tenant``; by tenant ``tier`` (3 gold,
  2 silver, 1 bronze); ``retire_obj`` and ``retire_t`` s.
- Minute counts (CSV ``HashOwner,HashApp,HashFunction,Trigger,<minute>,…``): the form of the Azure Functions 2019 data.
- Rates (CSV ``client,ts_s,rate_rps,cv``): requests per second of a client from ``ts_s`` on for ten minutes.
- Requests (CSV ``t_s,tenant,version`` and, where known, ``size_mib,reload_ms,weight``): one line a request, as they can
  be exported from the request records of a fleet.
"""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from cachecontrol.replay.assumptions import remote_costs, sizes, weights
from cachecontrol.replay.trace import Trace

if TYPE_CHECKING:
    from _csv import Reader as _Reader
    from collections.abc import Callable, Iterator

    from cachecontrol.replay.trace import Numbers
    from cachecontrol.scoring.ports import Floats

# What a source doesn't say is drawn, always the same.
_SEED: Final = 20_190_717
_ENTRIES_A_MINUTE: Final = 2
_ENTRIES_A_WINDOW: Final = 5
_WINDOW_S: Final = 600.0
_WEIGHT_OF_TIER: Final = np.array([1.0, 1.0, 2.0, 4.0])
_ARRAYS: Final = ("t", "obj", "size", "cost", "tenant", "tier", "retire_obj", "retire_t")
_ZIP_MAGIC: Final = b"PK\x03\x04"


class TraceUnreadable(ValueError):
    """The file is none of the known forms, or breaks its own."""


def read_trace(source: IO[bytes], *, name: str) -> Trace:
    """The trace in an open file, by what it begins with.

    Raises:
        TraceUnreadable: says what is wrong, and in which line.

    """
    start = source.read(len(_ZIP_MAGIC))
    source.seek(0)
    if start == _ZIP_MAGIC:
        return _from_arrays(source, name)
    text = io.TextIOWrapper(source, encoding="utf-8", newline="")
    try:
        return _from_rows(csv.reader(text), name)
    finally:
        text.detach()


def _from_rows(rows: _Reader, name: str) -> Trace:
    try:
        header = next(rows, [])
        return _reader_of(header)(name, header, rows)
    except (ValueError, IndexError, csv.Error) as error:
        if isinstance(error, TraceUnreadable):
            raise
        raise TraceUnreadable(f"line {rows.line_num} can't be read: {error}") from error


def _reader_of(header: list[str]) -> Callable[[str, list[str], Iterator[list[str]]], Trace]:
    if header[:4] == ["HashOwner", "HashApp", "HashFunction", "Trigger"]:
        return _from_minutes
    if header == ["client", "ts_s", "rate_rps", "cv"]:
        return _from_rates
    if header[:3] == ["t_s", "tenant", "version"]:
        return _from_requests
    raise TraceUnreadable(
        "it is neither an .npz archive nor a CSV whose first line begins with HashOwner,HashApp,HashFunction,Trigger; "
        "client,ts_s,rate_rps,cv; or t_s,tenant,version"
    )


def _from_arrays(source: IO[bytes], name: str) -> Trace:
    try:
        with np.load(source, allow_pickle=False) as archive:
            found = {key: archive[key] for key in _ARRAYS}
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise TraceUnreadable(f"the archive can't be read: {error}") from error
    retires_at = np.full(len(found["size"]), np.inf)
    retires_at[found["retire_obj"]] = found["retire_t"]
    order = np.argsort(found["t"], kind="stable")
    return Trace(
        name=name,
        at=found["t"][order].astype(np.float64),
        version=found["obj"][order].astype(np.int64),
        requests=np.ones(len(order), dtype=np.int64),
        size_mib=found["size"].astype(np.float64),
        remote_ms=found["cost"].astype(np.float64),
        tenant=found["tenant"].astype(np.int64),
        weight=_WEIGHT_OF_TIER[found["tier"]],
        retires_at=retires_at,
    )


@dataclass(slots=True)
class _Gathered:
    """Entries and names as they are read, before they become arrays."""

    at: list[float] = field(default_factory=list)
    version: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    versions: dict[tuple[str, ...], int] = field(default_factory=dict)
    tenants: dict[str, int] = field(default_factory=dict)
    tenant_of: list[int] = field(default_factory=list)

    def number(self, tenant: str, *name: str) -> int:
        """The index of a version, by its tenant and name."""
        key = (tenant, *name)
        if key not in self.versions:
            self.versions[key] = len(self.versions)
            self.tenant_of.append(self.tenants.setdefault(tenant, len(self.tenants)))
        return self.versions[key]

    def add(self, at: float, version: int, requests: int) -> None:
        self.at.append(at)
        self.version.append(version)
        self.requests.append(requests)

    def trace(self, name: str, rng: np.random.Generator) -> Trace:
        """The whole, with sizes, costs and weights drawn."""
        size_mib = sizes(len(self.versions), rng)
        order = np.argsort(np.array(self.at), kind="stable")
        return Trace(
            name=name,
            at=np.array(self.at, dtype=np.float64)[order],
            version=_numbers(self.version)[order],
            requests=_numbers(self.requests)[order],
            size_mib=size_mib,
            remote_ms=remote_costs(size_mib, rng),
            tenant=_numbers(self.tenant_of),
            weight=weights(len(self.tenants), rng),
            retires_at=np.full(len(self.versions), np.inf),
            tenants=tuple(self.tenants),
        )


def _from_minutes(name: str, header: list[str], rows: Iterator[list[str]]) -> Trace:
    minutes = [float(minute) * 60 for minute in header[4:]]
    rng = np.random.default_rng(_SEED)
    gathered = _Gathered()
    for owner, app, function, _trigger, *counts in rows:
        version = gathered.number(owner, app, function)
        for begins, count in zip(minutes, counts, strict=True):
            _spread(gathered, version, int(count), begins=begins, lasts=60.0, most=_ENTRIES_A_MINUTE, rng=rng)
    return gathered.trace(name, rng)


def _from_rates(name: str, _header: list[str], rows: Iterator[list[str]]) -> Trace:
    rng = np.random.default_rng(_SEED)
    gathered = _Gathered()
    for client, begins, rate, _cv in rows:
        version, count = gathered.number(client), int(rng.poisson(float(rate) * _WINDOW_S))
        _spread(gathered, version, count, begins=float(begins), lasts=_WINDOW_S, most=_ENTRIES_A_WINDOW, rng=rng)
    return gathered.trace(name, rng)


def _spread(
    gathered: _Gathered, version: int, count: int, *, begins: float, lasts: float, most: int, rng: np.random.Generator
) -> None:
    """Some requests of a span of time as at most ``most`` entries in it."""
    entries = min(count, most)
    for number, at in enumerate(sorted(rng.random(entries).tolist())):
        gathered.add(begins + lasts * at, version, count // entries + (number < count % entries))


def _from_requests(name: str, header: list[str], rows: Iterator[list[str]]) -> Trace:
    gathered = _Gathered()
    given: dict[str, dict[int, float]] = {column: {} for column in header[3:]}
    for row in rows:
        version = gathered.number(row[1], row[2])
        gathered.add(float(row[0]), version, 1)
        for column, value in zip(given, row[3:], strict=True):
            if value:
                given[column][version] = float(value)
    return _with_given(gathered.trace(name, np.random.default_rng(_SEED)), given)


def _with_given(trace: Trace, given: dict[str, dict[int, float]]) -> Trace:
    """The same with what the source says in place of what was drawn."""
    by_tenant = {int(trace.tenant[version]): weight for version, weight in given.get("weight", {}).items()}
    _overwrite(trace.size_mib, given.get("size_mib", {}))
    _overwrite(trace.remote_ms, given.get("reload_ms", {}))
    _overwrite(trace.weight, by_tenant)
    return trace


def _overwrite(values: Floats, given: dict[int, float]) -> None:
    for place, value in given.items():
        values[place] = value


def _numbers(values: list[int]) -> Numbers:
    return np.array(values, dtype=np.int64)
