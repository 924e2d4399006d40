"""A day of a fleet that never existed: skewed, drifting, bursty, with versions that are rolled out meanwhile.

Popularity falls by Zipf's law; each tenant has its own hours; some versions are hammered for some minutes; some are
replaced by a next version, with a few requests that still name the old one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cachecontrol.replay.assumptions import remote_costs, sizes, weights
from cachecontrol.replay.trace import Trace

if TYPE_CHECKING:
    from cachecontrol.replay.trace import Numbers
    from cachecontrol.scoring.ports import Floats

DAY_S = 86_400.0
ZIPF = 0.9
SWING = 0.8
SLOTS = 96
BURST_SHARE = 0.15
BURST_S = (120.0, 600.0)
STRAGGLERS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """How large the day is."""

    versions: int = 2000
    tenants: int = 200
    requests: int = 200_000
    bursts: int = 400
    roll_outs: int = 100
    seed: int = 1


def day(fleet: Fleet) -> Trace:
    """The requests of one day, always the same for the same fleet."""
    rng = np.random.default_rng(fleet.seed)
    tenant = rng.choice(fleet.tenants, size=fleet.versions, p=_zipf(fleet.tenants))
    bursty = int(fleet.requests * BURST_SHARE) if fleet.bursts else 0
    steady_at, steady = _steady(fleet, tenant, fleet.requests - bursty, rng)
    burst_at, burst = _bursts(fleet, bursty, rng)
    at, version = np.concatenate([steady_at, burst_at]), np.concatenate([steady, burst])
    order = np.argsort(at, kind="stable")
    return _rolled_out(fleet, at[order], version[order], tenant, rng)


def _zipf(many: int) -> Floats:
    share: Floats = np.arange(1, many + 1, dtype=np.float64) ** -ZIPF
    share /= share.sum()
    return share


def _steady(fleet: Fleet, tenant: Numbers, requests: int, rng: np.random.Generator) -> tuple[Floats, Numbers]:
    """Requests by popularity and by the hours of each tenant."""
    popularity = rng.permutation(_zipf(fleet.versions))
    phase = rng.random(fleet.tenants)
    hours = 1 + SWING * np.sin(2 * np.pi * (np.arange(SLOTS)[None, :] / SLOTS - phase[:, None]))
    share = popularity[:, None] * hours[tenant]
    cells = rng.choice(share.size, size=requests, p=(share / share.sum()).ravel())
    version, slot = np.divmod(cells, SLOTS)
    return (slot + rng.random(requests)) * (DAY_S / SLOTS), version


def _bursts(fleet: Fleet, requests: int, rng: np.random.Generator) -> tuple[Floats, Numbers]:
    """Requests that come for a few versions within minutes."""
    if not requests:
        return np.empty(0), np.empty(0, dtype=np.int64)
    lasts = rng.uniform(*BURST_S, size=fleet.bursts)
    begins = rng.random(fleet.bursts) * (DAY_S - lasts)
    target = rng.integers(fleet.versions, size=fleet.bursts)
    which = rng.integers(fleet.bursts, size=requests)
    return begins[which] + rng.random(requests) * lasts[which], target[which]


def _rolled_out(fleet: Fleet, at: Floats, version: Numbers, tenant: Numbers, rng: np.random.Generator) -> Trace:
    """The same where some versions are replaced: the next version takes over all but a few of the requests."""
    old = rng.choice(fleet.versions, size=fleet.roll_outs, replace=False)
    retires_at = np.full(fleet.versions + fleet.roll_outs, np.inf)
    retires_at[old] = rng.uniform(0.1, 0.9, size=fleet.roll_outs) * DAY_S
    following = np.arange(fleet.versions)
    following[old] = fleet.versions + np.arange(fleet.roll_outs)
    moves = (at >= retires_at[version]) & (rng.random(len(at)) >= STRAGGLERS)
    size_mib = sizes(fleet.versions, rng)
    size_mib = np.concatenate([size_mib, size_mib[old]])
    return Trace(
        name="synthetic",
        at=at,
        version=np.where(moves, following[version], version),
        requests=np.ones(len(at), dtype=np.int64),
        size_mib=size_mib,
        remote_ms=remote_costs(size_mib, rng),
        tenant=np.concatenate([tenant, tenant[old]]),
        weight=weights(fleet.tenants, rng),
        retires_at=retires_at,
    )
