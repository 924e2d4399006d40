"""What the answers and readings of a set of examples come to. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from registry.evaluation import Example
from workers.evaluation.ports import Score, Voice

WORST: Final = 10
# The largest power of e that a float holds is a little above.
_LARGEST_EXPONENT: Final = 700.0
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Result:
    """One example: what each voice answered, how each reads the reference (or else the candidate's answer).

    `forbidden` are the voices whose answer matches the example's forbidden pattern.
    """

    number: int
    example: Example
    answers: Mapping[Voice, str]
    scores: Mapping[Voice, Score]
    forbidden: frozenset[Voice] = frozenset()


@dataclass(frozen=True, slots=True)
class Metrics:
    """One voice on a set of examples; None where they have nothing to measure it on.

    Attributes:
        examples: how many were evaluated.
        references: how many of them have a reference.
        perplexity: of the references' tokens.
        exact_agreement: share of answers that equal their reference but for white space around, 0 to 1.
        token_agreement: share of the references' tokens that the voice holds for most likely, 0 to 1.
        forbidden_hits: number of answers that match their forbidden pattern; None when nothing is forbidden.
        mean_kl: divergence from the base in nats per token.

    """

    examples: int
    references: int
    perplexity: float | None
    exact_agreement: float | None
    token_agreement: float | None
    forbidden_hits: int | None
    mean_kl: float | None


def measure(results: Sequence[Result], voice: Voice) -> Metrics:
    """What `voice` comes to on at least one result."""
    with_reference = [result for result in results if result.example.reference is not None]
    scores = [result.scores[voice] for result in with_reference]
    answered = [result for result in with_reference if voice in result.answers]
    return Metrics(
        examples=len(results),
        references=len(with_reference),
        perplexity=perplexity(value for score in scores for value in score.log_probabilities),
        exact_agreement=_mean(_is_exact(result, voice) for result in answered),
        token_agreement=_mean(hit for score in scores for hit in score.hits),
        forbidden_hits=_hits(results, voice),
        mean_kl=_mean(value for result in results for value in result.scores[voice].divergences),
    )


def perplexity(log_probabilities: Iterable[float]) -> float | None:
    """The exponential of the mean negative log-probability (nats); None of no tokens."""
    mean = _mean(log_probabilities)
    return None if mean is None else round(math.exp(min(-mean, _LARGEST_EXPONENT)), _DIGITS)


def largest_difference(one: Sequence[float], other: Sequence[float]) -> float:
    return max((abs(a - b) for a, b in zip(one, other, strict=True)), default=0.0)


def worst(results: Sequence[Result], *, most: int = WORST) -> tuple[Result, ...]:
    """The examples on which the candidate does worst: forbidden answers first, then the least likely references.

    An example without a reference counts by how far the candidate is from the base there.
    """
    return tuple(sorted(results, key=_badness, reverse=True)[:most])


def loss(score: Score) -> float:
    """Mean negative log-probability, in nats per token."""
    return -(_mean(score.log_probabilities) or 0.0)


def agreement(score: Score) -> float:
    """Share of the tokens that the voice holds for most likely."""
    return _mean(score.hits) or 0.0


def divergence(score: Score) -> float:
    """Mean divergence from the base, in nats per token."""
    return _mean(score.divergences) or 0.0


def _badness(result: Result) -> tuple[bool, float]:
    score = result.scores[Voice.CANDIDATE]
    return (
        Voice.CANDIDATE in result.forbidden,
        divergence(score) if result.example.reference is None else loss(score),
    )


def _hits(results: Sequence[Result], voice: Voice) -> int | None:
    judged = [result for result in results if result.example.forbidden is not None and voice in result.answers]
    return sum(voice in result.forbidden for result in judged) if judged else None


def _is_exact(result: Result, voice: Voice) -> bool:
    return result.answers[voice].strip() == (result.example.reference or "").strip()


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return round(math.fsum(listed) / len(listed), _DIGITS) if listed else None
