"""Whose answer it is: the tokens and their log-probabilities, compared with what each version says when asked alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Nats a token. The same engine repeats itself exactly; its rounding differs when a prompt is cached.
TOLERANCE = 0.02
# The closest two versions have to be further apart than any answer may be from its own.
MARGIN = 4 * TOLERANCE
# What a token counts that isn't the expected one, and each after it: they follow from another text.
_OTHER_TOKEN = 5.0


@dataclass(frozen=True, slots=True)
class Voice:
    """One answer: its tokens, and how likely the model found each (in nats)."""

    tokens: tuple[str, ...]
    log_probabilities: tuple[float, ...]


def distance(one: Voice, other: Voice) -> float:
    """How far apart two answers to one prompt are: nats a token, on average."""
    length = max(len(one.tokens), len(other.tokens))
    total, agreed = 0.0, 0
    for token, again, log, log_again in zip(
        one.tokens, other.tokens, one.log_probabilities, other.log_probabilities, strict=False
    ):
        if token != again:
            break
        total += abs(log - log_again)
        agreed += 1
    return (total + _OTHER_TOKEN * (length - agreed)) / length if length else 0.0


@dataclass(frozen=True, slots=True)
class Voices:
    """What each version, and the base, says when it is asked alone."""

    known: Mapping[str, Voice]

    def closest(self) -> float:
        """The distance of the two that are most alike."""
        return min(distance(one, other) for one, other in combinations(self.known.values(), 2))

    def speaker(self, voice: Voice) -> str | None:
        """Whose answer this is; None if it is nobody's (a NaN is nobody's too)."""
        name = min(self.known, key=lambda name: distance(self.known[name], voice))
        return name if distance(self.known[name], voice) <= TOLERANCE else None
