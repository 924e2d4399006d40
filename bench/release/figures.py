"""What a release cost those who asked meanwhile. Pure: answers and times in, figures out; times are UNIX times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.release.relay import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bench.release.load import Answer

# After so long no gateway may still give requests to a version that was left.
LATEST_S = 0.1


@dataclass(frozen=True, slots=True)
class Calm:
    """Of the requests while a sound candidate was released.

    Attributes:
        requests: that began meanwhile.
        failed: of them, with or without the candidate's doing.
        taken_back: answers by the stable version to users who had had the candidate.
        by_candidate: answers by it.
        bad: answers that weren't what the alias has always said.

    """

    requests: int
    failed: int
    taken_back: int
    by_candidate: int
    bad: int


def calm_of(
    answers: Sequence[Answer], *, began: float, ended: float, candidate: str, is_good: Callable[[Answer], bool]
) -> Calm:
    """Sum up what began between the two moments."""
    meanwhile = [answer for answer in answers if began <= answer.began < ended]
    return Calm(
        requests=len(meanwhile),
        failed=sum(not answer.is_answered for answer in meanwhile),
        taken_back=_taken_back(meanwhile, candidate),
        by_candidate=sum(answer.version == candidate for answer in meanwhile),
        bad=sum(answer.is_answered and not is_good(answer) for answer in meanwhile),
    )


def _taken_back(answers: Iterable[Answer], candidate: str) -> int:
    """A request that began when an earlier one of the same user had its answer by the candidate gets it, too."""
    had: dict[str, float] = {}
    for answer in answers:
        if answer.version == candidate:
            had[answer.session] = min(answer.ended, had.get(answer.session, answer.ended))
    return sum(
        answer.version != candidate and answer.began > had.get(answer.session, answer.began) for answer in answers
    )


@dataclass(frozen=True, slots=True)
class Harm:
    """Of the requests from the beginning of a fault on.

    Attributes:
        detect_s: from the fault to the change that ended the release.
        requests: of all that began in that time.
        by_candidate: of them, for which the candidate was chosen.
        harmed: answers that were as the fault makes them.
        elsewhere: requests that failed although the candidate was not chosen for them.
        late_ms: how long after the change the last request began that the candidate still got.
        late: how many of those began more than ``LATEST_S`` after it.
        nearby: requests that the candidate got and that began no earlier than ``LATEST_S`` before the change.

    """

    detect_s: float
    requests: int
    by_candidate: int
    harmed: int
    elsewhere: int
    late_ms: float
    late: int
    nearby: int


def harm_of(
    answers: Sequence[Answer], *, onset: float, ended: float, candidate: str, is_harmed: Callable[[Answer], bool]
) -> Harm:
    """Sum up what ended after the fault began, by the change at `ended` and later."""
    touched = [answer for answer in answers if answer.ended > onset]
    meanwhile = [answer for answer in touched if answer.began < ended]
    since = [answer.began - ended for answer in touched if answer.version == candidate]
    nearby = [seconds for seconds in since if seconds >= -LATEST_S]
    return Harm(
        detect_s=ended - onset,
        requests=len(meanwhile),
        by_candidate=sum(answer.version == candidate for answer in meanwhile),
        harmed=sum(answer.version == candidate and is_harmed(answer) for answer in touched),
        elsewhere=sum(answer.version != candidate and not answer.is_answered for answer in touched),
        late_ms=1000 * max(0.0, max(nearby, default=0.0)),
        late=sum(seconds > LATEST_S for seconds in nearby),
        nearby=len(nearby),
    )


def harmed_by(fault: Fault, *, slow_s: float, is_good: Callable[[Answer], bool]) -> Callable[[Answer], bool]:
    """Whether an answer by the candidate is as this fault makes it."""
    return {
        Fault.SLOW: lambda answer: answer.first_s >= slow_s,
        Fault.FAILING: lambda answer: not answer.is_answered,
        Fault.WORSE: lambda answer: answer.is_answered and not is_good(answer),
    }[fault]
