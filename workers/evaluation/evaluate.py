"""One evaluation: the fixed text first, then the examples in batches for as long as there is time."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from registry.evaluation import Example
from registry.reports import PROBE_TEXT, ProbeReference
from workers.evaluation.errors import NotPossibleError
from workers.evaluation.metrics import Result, largest_difference, worst
from workers.evaluation.patterns import matches
from workers.evaluation.ports import Answer, Model, Score, Voice

BATCH: Final = 8
ANSWER_TOKENS: Final = 64
# An answer may be a little longer than its reference, so that one that goes on is seen to do so.
BEYOND_REFERENCE: Final = 8
MAX_ANSWER_TOKENS: Final = 192
# The rest is left for what the base answers to the worst of them.
_SHARE_FOR_EXAMPLES: Final = 0.8

_Numbered = tuple[int, Example]
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Budget:
    """What an evaluation may take.

    Attributes:
        seconds: how long it may take; no batch is begun that would, at the pace so far, end later.
        answer_tokens: how long an answer may be where no reference says it.
        now: the clock.

    """

    seconds: float
    answer_tokens: int = ANSWER_TOKENS
    now: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was found.

    Attributes:
        probe: how each voice reads the fixed text.
        effect: the largest difference between candidate and base, over all that both have read, in nats.
        results: of the examples that there was time for and that fit.
        base_answers: what the base alone answers to the worst of them, by number.
        asked: how many examples there were.
        too_long: how many of them are longer than is read at once.
        seconds: how long it took.
        facts: of the model.

    """

    probe: Mapping[Voice, tuple[float, ...]]
    effect: float
    results: tuple[Result, ...]
    base_answers: Mapping[int, str]
    asked: int
    too_long: int
    seconds: float
    facts: Mapping[str, str]

    @property
    def is_finite(self) -> bool:
        """Whether all that the candidate was asked gave numbers."""
        return bool(self.probe[Voice.CANDIDATE]) and self.is_sound(Voice.CANDIDATE)

    def is_sound(self, voice: Voice) -> bool:
        """Whether a voice gave numbers wherever it read; what is served now need not."""
        read = [self.probe[voice], *(result.scores[voice].divergences for result in self.results)]
        read += [result.scores[voice].log_probabilities for result in self.results]
        return all(math.isfinite(value) for values in read for value in values)

    @property
    def reference(self) -> ProbeReference:
        """What nodes compare their engine's reading with."""
        return ProbeReference(PROBE_TEXT, base=self.probe[Voice.BASE], adapter=self.probe[Voice.CANDIDATE])

    @property
    def left_out(self) -> int:
        """How many examples there was no time for."""
        return self.asked - self.too_long - len(self.results)


def evaluate(model: Model, examples: Sequence[Example], budget: Budget) -> Evaluation:
    """Read the fixed text and ask the examples; without examples the fixed text alone.

    Raises:
        NotPossibleError: the base alone gives numbers that are none, so that nothing can be said of an adapter.

    """
    began = budget.now()
    probe = model.read(PROBE_TEXT)
    _require_sound_base([probe[Voice.BASE]])
    asking = _Asking(model, budget.answer_tokens)
    fitting = [(number, each) for number, each in enumerate(examples) if asking.fits(each)]
    results = asking.in_batches(fitting, asking.ask, _Pace(budget, began + budget.seconds * _SHARE_FOR_EXAMPLES))
    _require_sound_base(result.scores[Voice.BASE].log_probabilities for result in results)
    shown = [(result.number, result.example) for result in worst(results)]
    base_answers = asking.in_batches(shown, asking.ask_base, _Pace(budget, began + budget.seconds))
    return Evaluation(
        probe=probe,
        effect=_effect(probe, results),
        results=tuple(results),
        base_answers=dict(base_answers),
        asked=len(examples),
        too_long=len(examples) - len(fitting),
        seconds=budget.now() - began,
        facts=model.facts,
    )


class _Pace:
    """How many examples there is time for: one to begin with, then as many as have taken as long so far."""

    def __init__(self, budget: Budget, until: float) -> None:
        self._now, self._until = budget.now, until
        self._began = budget.now()
        self._done = 0

    def next(self) -> int:
        now = self._now()
        if now >= self._until:
            return 0
        if not self._done:
            return 1
        each = (now - self._began) / self._done
        return BATCH if each * BATCH <= self._until - now else int((self._until - now) / each)

    def add(self, many: int) -> None:
        self._done += many


@dataclass(frozen=True, slots=True)
class _Asking:
    model: Model
    answer_tokens: int

    def fits(self, example: Example) -> bool:
        return self.model.fits(example.prompt, more=self._most(example))

    def in_batches(
        self, waiting: Sequence[_Numbered], ask: Callable[[Sequence[_Numbered]], Iterable[_Found]], pace: _Pace
    ) -> list[_Found]:
        """What `ask` finds, batch by batch, for as many as there is time for."""
        found: list[_Found] = []
        while waiting and (many := pace.next()):
            batch = self._together(waiting[:many])
            found += ask(batch)
            pace.add(len(batch))
            waiting = waiting[len(batch) :]
        return found

    def _together(self, batch: Sequence[_Numbered]) -> Sequence[_Numbered]:
        """The first of them, as many as can be asked at once: the longest prompt gets the longest answer's room."""
        examples = [example for _, example in batch]
        most = max(map(self._most, examples))
        if len(batch) == 1 or all(self.model.fits(example.prompt, more=most) for example in examples):
            return batch
        return self._together(batch[: len(batch) // 2])

    def ask(self, batch: Sequence[_Numbered]) -> list[Result]:
        examples = [example for _, example in batch]
        prompts, most = [example.prompt for example in examples], list(map(self._most, examples))
        asked: list[Voice] = [voice for voice in self.model.voices if voice is not Voice.BASE]
        answers = {voice: self.model.answer(prompts, voice, most=most) for voice in asked}
        forbidden = _forbidden(examples, answers)
        return [
            Result(
                number=number,
                example=example,
                answers={voice: given[place].text for voice, given in answers.items()},
                scores=self._scores(example, answers[Voice.CANDIDATE][place]),
                forbidden=forbidden[place],
            )
            for place, (number, example) in enumerate(batch)
        ]

    def ask_base(self, batch: Sequence[_Numbered]) -> list[tuple[int, str]]:
        """What the base alone answers, beside the example's number."""
        prompts = [example.prompt for _, example in batch]
        answers = self.model.answer(prompts, Voice.BASE, most=[self._most(example) for _, example in batch])
        return [(number, answer.text) for (number, _), answer in zip(batch, answers, strict=True)]

    def _scores(self, example: Example, answer: Answer) -> Mapping[Voice, Score]:
        if example.reference is None:
            return self.model.score(example.prompt, answer.tokens)
        return self.model.score(example.prompt, self.model.tokens(example.reference)[:MAX_ANSWER_TOKENS])

    def _most(self, example: Example) -> int:
        """How many tokens an answer may have."""
        if example.reference is None:
            return self.answer_tokens
        return min(len(self.model.tokens(example.reference)) + BEYOND_REFERENCE, MAX_ANSWER_TOKENS)


def _require_sound_base(readings: Iterable[Sequence[float]]) -> None:
    if not all(math.isfinite(value) for values in readings for value in values):
        raise NotPossibleError("the base alone gives numbers that are none (NaN or infinite) on this worker")


def _forbidden(examples: Sequence[Example], answers: Mapping[Voice, Sequence[Answer]]) -> tuple[frozenset[Voice], ...]:
    """For each example the voices whose answer it forbids; all patterns are searched for at once."""
    jobs = [
        (place, voice, (example.forbidden, given[place].text))
        for place, example in enumerate(examples)
        if example.forbidden is not None
        for voice, given in answers.items()
    ]
    found = matches([job for _, _, job in jobs])
    hits = {(place, voice) for (place, voice, _), hit in zip(jobs, found, strict=True) if hit}
    return tuple(frozenset(voice for voice in answers if (place, voice) in hits) for place in range(len(examples)))


def _effect(probe: Mapping[Voice, tuple[float, ...]], results: Sequence[Result]) -> float:
    read = [largest_difference(probe[Voice.CANDIDATE], probe[Voice.BASE])]
    for result in results:
        candidate, base = result.scores[Voice.CANDIDATE], result.scores[Voice.BASE]
        read.append(largest_difference(candidate.log_probabilities, base.log_probabilities))
    return max(read)
