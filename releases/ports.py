"""What releases needs from the apps above it. The app that can do it supplies it when it starts."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from registry.actors import Actor
from releases.judge.facts import Window


class PrewarmPort(Protocol):
    def __call__(self, *, actor: Actor, version_id: UUID) -> None:
        """Ask for the version to be warm on some node. A wish, not a promise: without room it stays cold."""
        ...


def leave_cold(*, actor: Actor, version_id: UUID) -> None:
    """The null twin: nothing warms versions here."""


@dataclass(frozen=True, slots=True)
class Warmth:
    """Where a version is loaded, and where it should be for an alias that moves to it.

    ``wanted`` nodes, of which ``ready`` hold it loaded and routable; ``trouble`` says why no more will be, ``note``
    what those that are missing wait for.
    """

    ready: int
    wanted: int
    trouble: str = ""
    note: str = ""


class WarmUpPort(Protocol):
    def __call__(self, *, actor: Actor, version_id: UUID, like: UUID, nodes: int | None, since: datetime) -> Warmth:
        """Have the version loaded on ``nodes`` nodes (None: as many as hold ``like`` now, one at least).

        Repeating it is harmless and is how the wait goes on. What failed for good before ``since`` is tried once more.
        """
        ...


class Figures(StrEnum):
    """What the offline evaluation of a candidate has come to, beside the stable version's."""

    AWAITED = "awaited"
    KEPT = "kept"
    BROKEN = "broken"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """``sentence`` says it for people: the figures, the gates that are broken, or why there are no figures."""

    figures: Figures
    sentence: str


class EvaluationPort(Protocol):
    def __call__(self, *, actor: Actor, candidate_id: UUID, stable_id: UUID, since: datetime) -> Evaluation:
        """Hold the tenant's gates against both versions' figures on the evaluation set of today.

        Figures that are missing are asked for, once since ``since``; repeating it is how the wait goes on.
        """
        ...


class CoolPort(Protocol):
    def __call__(self, *, actor: Actor, version_id: UUID, reason: str) -> None:
        """Let the version leave its nodes once it is drained, and have nothing warm it again, unless it serves."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Which requests of an alias are compared: from the beginning of a step until now, in slices of ``slice_s``."""

    alias_id: int
    stable_id: UUID
    candidate_id: UUID
    since: datetime
    until: datetime
    slice_s: float
    is_shadow: bool


class WindowPort(Protocol):
    def __call__(self, traffic: Traffic) -> Window | None:
        """What gateways have recorded, in slices. None: more than can be counted in the time there is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """That an alias left a version: a person asked at ``asked_at``, and it was committed at ``committed_at``.

    What happened after ``until`` is of no interest: the version may have come back.
    """

    alias_id: int
    version_id: UUID
    asked_at: datetime
    committed_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class LastAnswers:
    """A version's answers for an alias: when the last one ended, and how many began after the commit."""

    last_at: datetime | None
    strays: int


class LastAnswersPort(Protocol):
    def __call__(self, departure: Departure) -> LastAnswers:
        """What gateways have recorded by now; ``last_at`` is None where every answer was over before it was asked."""
        ...


def never_warm(*, actor: Actor, version_id: UUID, like: UUID, nodes: int | None, since: datetime) -> Warmth:  # noqa: ARG001  the shape of the port
    """The null twin: there are no nodes."""
    return Warmth(ready=0, wanted=nodes or 1)


def never_evaluated(*, actor: Actor, candidate_id: UUID, stable_id: UUID, since: datetime) -> Evaluation:  # noqa: ARG001  the shape of the port
    """The null twin: nobody evaluates."""
    return Evaluation(Figures.NONE, "Nothing evaluates versions here.")


def leave_warm(*, actor: Actor, version_id: UUID, reason: str) -> None:
    """The null twin: nothing is warm."""


def no_traffic(traffic: Traffic) -> Window:  # noqa: ARG001  the shape of the port
    """The null twin: nobody asks."""
    return Window()


def no_answers(departure: Departure) -> LastAnswers:  # noqa: ARG001  the shape of the port
    """The null twin: nobody was answered."""
    return LastAnswers(last_at=None, strays=0)


@dataclass(slots=True)
class Ports:
    """The one holder of what was supplied."""

    prewarm: PrewarmPort = leave_cold
    warm_up: WarmUpPort = never_warm
    evaluation: EvaluationPort = never_evaluated
    cool: CoolPort = leave_warm
    window: WindowPort = no_traffic
    last_answers: LastAnswersPort = no_answers


PORTS = Ports()
