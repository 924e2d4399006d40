"""What the evaluation needs of a model, and what it gets of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Voice(StrEnum):
    """Who speaks: the base alone, the version that is validated, or the one that is served now."""

    BASE = "base"
    CANDIDATE = "candidate"
    CURRENT = "current"


@dataclass(frozen=True, slots=True)
class Score:
    """How one voice reads an answer, token by token.

    Attributes:
        log_probabilities: of the answer's tokens, in nats.
        hits: whether the token is the one that the voice holds for most likely.
        divergences: Kullback-Leibler divergence of the voice's next-token distribution from the base's, in nats.

    """

    log_probabilities: tuple[float, ...]
    hits: tuple[bool, ...]
    divergences: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a voice says: text for people, and the tokens it is made of, its end included."""

    text: str
    tokens: tuple[int, ...]


class Model(Protocol):
    """A base on which some voices are loaded. `voices` has the base and those."""

    @property
    def voices(self) -> tuple[Voice, ...]: ...

    @property
    def facts(self) -> Mapping[str, str]:
        """Where and how it runs, for the report: device, dtype, and the releases of torch, transformers and peft."""
        ...

    def read(self, text: str) -> Mapping[Voice, tuple[float, ...]]:
        """The log-probability (nats) of each token of `text` after the first, as every voice reads it."""
        ...

    def tokens(self, text: str) -> tuple[int, ...]:
        """The tokens of an answer, without any special ones."""
        ...

    def fits(self, prompt: str, *, more: int) -> bool:
        """Whether a prompt and `more` tokens after it are within what is read at once."""
        ...

    def answer(self, prompts: Sequence[str], voice: Voice, *, most: Sequence[int]) -> tuple[Answer, ...]:
        """What a voice answers, the most likely token at each step; `most` is how many tokens each answer may have.

        The longest prompt with the longest answer has to fit.
        """
        ...

    def score(self, prompt: str, tokens: Sequence[int]) -> Mapping[Voice, Score]:
        """How every voice reads an answer to a prompt."""
        ...
