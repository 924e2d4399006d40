"""What one arm came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from bench.cache.plan import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.cache.adapters import Built
    from bench.cache.asking import Answer
    from bench.cache.identity import Voices
    from bench.cache.reads import Read


@dataclass(frozen=True, slots=True)
class Figures:
    """Of all requests of an arm; times in milliseconds from the moment at which a request was due.

    Attributes:
        requests: that were sent.
        answered: to their end.
        misses: whose version was not in the engine when they came.
        median_ms: to the first token.
        p95_ms: the same; an unanswered request counts as the patience of its application.
        p99_ms: the same.
        loaded_bytes: that the engine read.
        loads: how often it read an adapter.
        downloaded_bytes: that came from the origin.
        wrong: answers that were another version's, or nobody's.
        misrouted: answers of which the server says another version than the resolved one.
        reasons: why the unanswered ones were not, with how many.
        crashed: whether the engine ended.

    """

    requests: int
    answered: int
    misses: int
    median_ms: float
    p95_ms: float
    p99_ms: float
    loaded_bytes: int
    loads: int
    downloaded_bytes: int
    wrong: int
    misrouted: int
    reasons: Mapping[str, int]
    crashed: bool

    def lines(self) -> list[str]:
        """The figures as text."""
        found = [
            (
                f"answered {self.answered} of {self.requests}, wrong {self.wrong}, served by another version than the "
                f"resolved one {self.misrouted}, engine {'CRASHED' if self.crashed else 'alive'}"
            ),
            (
                f"misses {self.misses} ({self.misses / self.requests:.1%}), first token median {self.median_ms:.0f} "
                f"ms, p95 {self.p95_ms:.0f} ms, p99 {self.p99_ms:.0f} ms"
            ),
            (
                f"the engine read {self.loaded_bytes / MIB:.0f} MiB in {self.loads} loads, "
                f"{self.downloaded_bytes / MIB:.0f} MiB came from the origin"
            ),
        ]
        return found + [f"not answered: {times} x {reason}" for reason, times in self.reasons.items()]

    def faults(self) -> list[str]:
        """What must not happen in any arm, and makes its times worth nothing."""
        found = {
            "answers were wrong": self.wrong,
            "answers came from another version than the resolved one": self.misrouted,
            "requests were not answered": self.requests - self.answered,
        }
        told = [f"{number} {what}" for what, number in found.items() if number]
        return [*told, *(["the engine ended"] if self.crashed else [])]


def figures_of(
    answers: Sequence[Answer],
    *,
    versions: Mapping[int, Built],
    voices: Voices,
    reads: Sequence[Read],
    downloaded: int,
    crashed: bool,
) -> Figures:
    """Sum up an arm."""
    done = [answer for answer in answers if answer.is_answered]
    firsts = sorted(answer.first_token_s * 1000 for answer in answers)
    return Figures(
        requests=len(answers),
        answered=len(done),
        misses=sum(not answer.found for answer in answers),
        median_ms=median(firsts),
        p95_ms=quantile(firsts, 0.95),
        p99_ms=quantile(firsts, 0.99),
        loaded_bytes=sum(read.size for read in reads),
        loads=len(reads),
        downloaded_bytes=downloaded,
        wrong=sum(voices.speaker(answer.voice) != versions[answer.version].label for answer in done),
        misrouted=sum(answer.said != versions[answer.version].label for answer in done),
        reasons=Counter(f"{answer.status} {answer.reason[:160]}" for answer in answers if not answer.is_answered),
        crashed=crashed,
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value that `share` of the ordered values don't exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
