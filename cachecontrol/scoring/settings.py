"""The constants of scoring, with the defaults that apply without a policy document."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedLruWeights:
    """How much each normalised factor of ``weighted_lru`` counts; all are 0 or more."""

    idle: float = 1.0
    memory: float = 0.25
    hits: float = 1.0
    priority: float = 0.25
    reload: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringSettings:
    """``a``, ``b``, ``phi`` and ``rho`` are the constants of ``density``; ``rho`` is above 0 and at most 1."""

    half_life: timedelta = timedelta(minutes=30)
    a: float = 0.5
    b: float = 0.5
    phi: float = 0.25
    rho: float = 0.05
    weighted_lru: WeightedLruWeights = field(default_factory=WeightedLruWeights)
