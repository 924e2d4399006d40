"""Whether a loaded adapter answers as itself: one short text, read by the base and by the adapter.

Log-probabilities of the text's own tokens are compared, never answers: the adapter must differ from the engine's base,
and read as it did where it was validated. The requests follow one another: some engines mix up base and adapter when
both are in one batch.

How far an engine is from the validating worker was measured on vLLM 0.32 (bfloat16) against transformers (float32):
0.04 to 0.05 nats on average over the text's tokens, but 0.2 on a single one, while two adapters trained on the same
questions are 0.65 apart on average. So the mean is compared.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from registry.reports import PROBE_TEXT, ProbeReference
from workers.node.engines.ports import Engine
from workers.node.errors import (
    NoEffectError,
    OtherAnswersError,
    OtherBaseError,
    PoisonError,
    ProbeError,
    SickEngineError,
)

ATTEMPTS = 3
PAUSE_S = 0.2
# Versions are validated with one text; a few more while that changes.
MAX_TEXTS = 4
# An idle engine repeats itself exactly; other requests in its batch can move a value by rounding.
MIN_DIFFERENCE = 0.005
NOISE_FACTOR = 3.0
TOLERANCE = 0.12

Values = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _BaseReading:
    """How the base reads a text in one life of the engine, and what counts as different from that."""

    boot_id: str
    text: str
    values: Values
    limit: float


class Prober:
    """Reads the base once in each life of the engine, twice in a row or more for its noise, and keeps that.

    One thread at a time reads, where the engine's turn is taken for it.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        base_model: str,
        tolerance: float = TOLERANCE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Say how many nats an engine's readings may be from the validating worker's, on average over the tokens."""
        self._engine = engine
        self._base_model = base_model
        self._tolerance = tolerance
        self._sleep = sleep
        self._kept: dict[str, _BaseReading] = {}

    def probe(self, name: str, *, boot_id: str, reference: ProbeReference | None = None) -> float:
        """Check the adapter `name`; the largest difference from the base in nats.

        Args:
            name: what the engine calls the adapter.
            boot_id: of the engine's present life.
            reference: how base and adapter read where the version was validated, if they did.

        Raises:
            SickEngineError: the base itself gives log-probabilities that are no numbers.
            PoisonError: the adapter does.
            OtherBaseError: the engine's base reads otherwise than the registered one.
            OtherAnswersError: the adapter reads otherwise than where it was validated.
            NoEffectError: the adapter reads the text like the base.
            ProbeError: another model answers.
            EngineError: the engine doesn't answer.

        """
        base = self._base_for(boot_id, reference)
        fault: ProbeError | None = None
        for attempt in range(ATTEMPTS):
            if attempt:
                self._sleep(PAUSE_S)
            values = self._read_adapter(name, base.text)
            fault = self._fault(name, values, base, reference)
            if fault is None:
                return _largest(values, base.values)
        raise fault or ProbeError(f"{name} was not read")

    def _base_for(self, boot_id: str, reference: ProbeReference | None) -> _BaseReading:
        """How the base reads the text; one that is not as the reference says is read anew before it is believed."""
        if reference is None:
            return self._base(boot_id, PROBE_TEXT)
        base = self._base(boot_id, reference.prompt)
        try:
            self._expect_base(reference, base.values)
        except OtherBaseError:
            self._kept.pop(reference.prompt, None)
            base = self._base(boot_id, reference.prompt)
            self._expect_base(reference, base.values)
        return base

    def check_base(self, *, boot_id: str) -> None:
        """Check that the base reads a text as it did before in this life of the engine.

        Raises:
            SickEngineError: it gives log-probabilities that are no numbers.
            OtherBaseError: it reads otherwise now, each time it is asked.
            EngineError, ProbeError: the engine doesn't answer, or as another model.

        """
        base = self._base(boot_id, PROBE_TEXT)
        deviation = 0.0
        for attempt in range(ATTEMPTS):
            if attempt:
                self._sleep(PAUSE_S)
            deviation = _mean(self._read_base(base.text), base.values)
            if deviation <= self._tolerance:
                return
        raise OtherBaseError(f"the engine's base reads otherwise than before: by {deviation:.3f} nats a token")

    def _fault(
        self, name: str, values: Values, base: _BaseReading, reference: ProbeReference | None
    ) -> ProbeError | None:
        """What is wrong with a reading of the adapter, if anything."""
        if (difference := _largest(values, base.values)) <= base.limit:
            return NoEffectError(
                f"{name} reads like the base: it differs by {difference:.4f} nats, noise is {base.limit:.4f}"
            )
        if reference is not None and (deviation := _mean(values, reference.adapter)) > self._tolerance:
            return OtherAnswersError(
                f"{name} reads otherwise than where it was validated: by {deviation:.3f} nats a token, "
                f"{self._tolerance:g} are allowed"
            )
        return None

    def _expect_base(self, reference: ProbeReference, values: Values) -> None:
        if len(values) != len(reference.base):
            raise OtherBaseError(
                f"the engine reads the text as {len(values)} tokens, {len(reference.base)} are expected: it has "
                "another tokenizer than the one that versions are validated with, or begins texts otherwise"
            )
        deviation = _mean(values, reference.base)
        if deviation > self._tolerance:
            raise OtherBaseError(
                f"the engine's base reads otherwise than the one that versions are validated on: by {deviation:.3f} "
                f"nats a token, {self._tolerance:g} are allowed. It is another revision, or runs in another precision"
            )

    def _base(self, boot_id: str, text: str) -> _BaseReading:
        kept = self._kept.get(text)
        if kept is None or kept.boot_id != boot_id:
            values, noise = self._read_quietly(text)
            kept = _BaseReading(boot_id, text, values, max(MIN_DIFFERENCE, NOISE_FACTOR * noise))
            self._kept = {text: kept, **{old: each for old, each in self._recent() if old != text}}
        return kept

    def _read_quietly(self, text: str) -> tuple[Values, float]:
        """Read twice in a row, and once more for as long as the two differ, a few times; the last, and its noise.

        A request that shares a batch with one of them must not pass for the engine's own noise.
        """
        values = self._read_base(text)
        noise = math.inf
        for _ in range(ATTEMPTS):
            values, before = self._read_base(text), values
            noise = min(noise, _largest(values, before))
            if noise * NOISE_FACTOR <= MIN_DIFFERENCE:
                break
        return values, noise

    def _recent(self) -> list[tuple[str, _BaseReading]]:
        return list(self._kept.items())[: MAX_TEXTS - 1]

    def _read_base(self, text: str) -> Values:
        values = self._read(self._base_model, text)
        if not _finite(values):
            raise SickEngineError("the engine's base gives log-probabilities that are no numbers: restart it")
        return values

    def _read_adapter(self, name: str, text: str) -> Values:
        values = self._read(name, text)
        if not _finite(values):
            raise PoisonError(f"{name} gives log-probabilities that are no numbers: the engine must be restarted")
        return values

    def _read(self, model: str, text: str) -> Values:
        reading = self._engine.read_prompt(model=model, prompt=text)
        if reading.model != model:
            raise ProbeError(f"asked for {model}, {reading.model!a} answered")
        return reading.log_probabilities


def _finite(values: Values) -> bool:
    return bool(values) and all(map(math.isfinite, values))


def _differences(one: Sequence[float], other: Sequence[float]) -> list[float]:
    if len(one) != len(other):
        raise ProbeError(f"one reading of the text has {len(one)} tokens, another {len(other)}")
    return [abs(a - b) for a, b in zip(one, other, strict=True)]


def _largest(one: Sequence[float], other: Sequence[float]) -> float:
    return max(_differences(one, other))


def _mean(one: Sequence[float], other: Sequence[float]) -> float:
    differences = _differences(one, other)
    return sum(differences) / len(differences)
