"""A model that says and reads what it is told to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workers.evaluation.ports import Answer, Score, Voice

FLAT = Score(log_probabilities=(-1.0, -1.0), hits=(True, False), divergences=(0.0, 0.0))


@dataclass
class ScriptedModel:
    """`says` and `scores` by voice; a prompt longer than `room` characters does not fit."""

    says: dict[Voice, str]
    scores: dict[Voice, Score] = field(default_factory=dict)
    reads: dict[Voice, tuple[float, ...]] = field(default_factory=dict)
    room: int = 100
    counts_answers: bool = False
    seconds_each: float = 0.0
    clock: float = 0.0
    longest: int = 0
    limits: list[int] = field(default_factory=list)
    asked: list[tuple[Voice, int]] = field(default_factory=list)
    facts: Mapping[str, str] = field(default_factory=lambda: {"device": "cpu"})

    @property
    def voices(self) -> tuple[Voice, ...]:
        return (Voice.BASE, *(voice for voice in self.says if voice is not Voice.BASE))

    def read(self, text: str) -> dict[Voice, tuple[float, ...]]:
        default = {voice: (-1.0, -2.0 - 0.5 * place) for place, voice in enumerate(self.voices)}
        return {**default, **self.reads}

    def tokens(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))

    def fits(self, prompt: str, *, more: int) -> bool:
        return len(prompt) + (more if self.counts_answers else 0) <= self.room

    def answer(self, prompts: Sequence[str], voice: Voice, *, most: Sequence[int]) -> tuple[Answer, ...]:
        self.asked.append((voice, len(prompts)))
        self.clock += len(prompts) * self.seconds_each
        self.limits += most
        self.longest = max(self.longest, max(map(len, prompts)) + max(most))
        text = self.says.get(voice, "base")
        return tuple(Answer(text, self.tokens(text)[:each]) for each in most)

    def score(self, prompt: str, tokens: Sequence[int]) -> dict[Voice, Score]:
        return {voice: self.scores.get(voice, FLAT) for voice in self.voices}
