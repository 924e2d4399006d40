"""What is judged, how strictly, and how sure the judge has to be; the defaults that apply without a template."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

# Measures are compared in classes of values 4.4 % wide (``facts.Sketch``): a smaller allowance can't be told.
FINEST_RATIO = 0.05


@dataclass(frozen=True, slots=True)
class Allowance:
    """A difference, as the larger of an absolute one and a share of what the stable version has."""

    absolute: float
    relative: float = 0.0

    def __post_init__(self) -> None:
        if not (self.absolute >= 0 and self.relative >= 0 and self.absolute + self.relative > 0):
            raise ValueError("An allowance is 0 or more in both parts, and more than 0 in one of them.")

    def of(self, stable: float) -> float:
        return max(self.absolute, self.relative * stable)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """How much worse is worse.

    ``matters``: a fail needs at least this difference, beside evidence that there is one. ``margin``: a pass needs
    evidence that the difference is below this. ``minimum``: observations of each side below which nothing is said.
    ``is_needed``: without a pass in this, the whole is no pass; where it isn't, a fail counts, and what looks like one
    (a difference that matters, though it isn't certain) holds.
    """

    matters: Allowance
    margin: Allowance
    minimum: int
    is_needed: bool = True

    def __post_init__(self) -> None:
        matters, margin = self.matters, self.margin
        if matters.absolute > margin.absolute or matters.relative > margin.relative:
            raise ValueError("What matters may not be above the margin: such harm would be passed.")
        if self.minimum < 1:
            raise ValueError("minimum is 1 or more.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRule(_Rule):
    """A share of requests that had something bad happen, 0 to 1; allowances are in shares as well."""

    def __post_init__(self) -> None:
        _Rule.__post_init__(self)
        if not self.margin.absolute < 1:
            raise ValueError("The margin of a share is below 1.")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileRule(_Rule):
    """A quantile of a measure (0.95 is p95); allowances and ``ceiling`` are in the measure's unit.

    ``ceiling``: the candidate's quantile may not be above this, whatever the stable version's is; none by default.
    """

    quantile: float
    ceiling: float | None = None

    def __post_init__(self) -> None:
        _Rule.__post_init__(self)
        if not 0 < self.quantile < 1:
            raise ValueError("A quantile lies between 0 and 1.")
        if self.margin.relative < FINEST_RATIO:
            raise ValueError(f"The margin of a quantile is at least {FINEST_RATIO:.0%} of the stable version's.")
        if self.ceiling is not None and not self.ceiling > 0:
            raise ValueError("A ceiling is above 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorRule:
    """A mean, 0 to 1: certainly below ``floor`` is a fail, certainly above ``floor - slack`` a pass."""

    floor: float
    slack: float = 0.05
    minimum: int = 50
    is_needed: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.slack < self.floor <= 1:
            raise ValueError("A floor is at most 1, and its slack between 0 and the floor.")
        if self.minimum < 1:
            raise ValueError("minimum is 1 or more.")


def _errors() -> RateRule:
    return RateRule(matters=Allowance(0.005, 0.25), margin=Allowance(0.01, 0.25), minimum=30)


def _ttft() -> QuantileRule:
    return QuantileRule(quantile=0.95, matters=Allowance(20, 0.10), margin=Allowance(50, 0.25), minimum=100)


def _total() -> QuantileRule:
    return QuantileRule(quantile=0.95, matters=Allowance(100, 0.10), margin=Allowance(200, 0.25), minimum=100)


def _quality() -> RateRule:
    return RateRule(matters=Allowance(0.05), margin=Allowance(0.10), minimum=30, is_needed=False)


def _cost() -> QuantileRule:
    return QuantileRule(
        quantile=0.50, matters=Allowance(0, 0.10), margin=Allowance(0, 0.25), minimum=100, is_needed=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """``None`` for a rule: that isn't judged.

    ``false_alarm``: the chance that a release whose versions are equal is ever failed, over all its looks, metrics and
    steps. ``false_pass``: the chance that a step ever passes a candidate that is worse by a margin. ``steps``: how
    many steps of one release are judged; each has its share of ``false_alarm``. ``minimum_slices``: slices of the
    window with requests of both sides, below which it isn't known how much bursts matter.
    """

    false_alarm: float = 0.01
    false_pass: float = 0.05
    steps: int = 4
    minimum_slices: int = 3
    errors: RateRule | None = field(default_factory=_errors)
    ttft: QuantileRule | None = field(default_factory=_ttft)
    total: QuantileRule | None = field(default_factory=_total)
    quality: RateRule | None = field(default_factory=_quality)
    cost: QuantileRule | None = field(default_factory=_cost)
    agreement: FloorRule | None = None

    def __post_init__(self) -> None:
        if not (0 < self.false_alarm < 1 and 0 < self.false_pass < 1):
            raise ValueError("Chances lie between 0 and 1.")
        if self.steps < 1 or self.minimum_slices < 2:  # noqa: PLR2004  one slice says nothing of bursts
            raise ValueError("At least one step is judged, and on at least two slices.")
        if not self.tests:
            raise ValueError("At least one metric is judged.")

    @property
    def tests(self) -> int:
        """How many ways there are to fail a step."""
        rules = (self.errors, self.ttft, self.total, self.quality, self.cost, self.agreement)
        ceilings = (rule.ceiling for rule in (self.ttft, self.total, self.cost) if rule is not None)
        return sum(rule is not None for rule in rules) + sum(ceiling is not None for ceiling in ceilings)

    @property
    def false_alarm_per_test(self) -> float:
        """By Bonferroni over steps and metrics; fixed before any data, so what has no data takes its share, too."""
        return self.false_alarm / (self.steps * self.tests)

    @property
    def for_shadow(self) -> JudgeSettings:
        """Of a step whose answers are mirrored and thrown away: nobody marks them, and no first token is timed."""
        return replace(self, ttft=None, cost=None, quality=None)
