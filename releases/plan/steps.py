"""The steps of a plan, as a template writes them. Times are in minutes, shares in percent."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from registry.documents.values import Count, Name, Positive, Section

Percent = Annotated[float, Field(gt=0, le=100)]
Minutes = Annotated[float, Field(ge=0, le=10_080)]
Samples = Annotated[int, Field(ge=0, le=1_000_000)]


class PrewarmStep(Section):
    """Have the candidate loaded on so many nodes and wait for it; None: on as many as hold the stable version now."""

    nodes: Count | None = None
    longest_minutes: Positive = 15.0


class EvaluateStep(Section):
    """Wait for the offline evaluation of the candidate and hold its gates against the stable version's figures.

    ``is_needed``: without an evaluation set (so without figures) the step can't pass; else it is passed over.
    """

    is_needed: bool = False
    longest_minutes: Positive = 60.0


class _LiveStep(Section):
    """``gate``: once passed, the release waits for a person; ``longest_minutes`` without a verdict, and it pauses."""

    min_minutes: Minutes = 5.0
    min_samples: Samples = 200
    longest_minutes: Positive = 240.0
    gate: bool = False

    @model_validator(mode="after")
    def _can_end(self) -> Self:
        if self.longest_minutes < self.min_minutes:
            raise ValueError("longest_minutes is at least min_minutes")
        return self


class ShadowStep(_LiveStep):
    """Mirror a share of the requests to the candidate; its answers are compared and thrown away."""

    percent: Percent = 10.0
    agreement_floor: Annotated[float, Field(gt=0, le=1)] | None = None


class CanaryStep(_LiveStep):
    """Give the candidate to all requests of the ``tenants`` and to ``percent`` of everybody else's."""

    tenants: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()
    percent: Annotated[float, Field(ge=0, le=100)] = 0.0

    @model_validator(mode="after")
    def _gives_something(self) -> Self:
        if not (self.tenants or self.percent):
            raise ValueError("a canary step names tenants or a percent above 0")
        return self
