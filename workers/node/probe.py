"""Whether a loaded adapter answers as itself: one short prompt, read by the base and by the adapter.

Log-probabilities of the prompt's own tokens are compared, never text. The requests follow one another: some engines mix
up base and adapter when both are in one batch.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workers.node.engines.ports import Engine
from workers.node.errors import NoEffectError, PoisonError, ProbeError, SickEngineError

PROMPT = "Dear customer, the weather is fine today and the old lighthouse opens at nine. How can I help you?"
ATTEMPTS = 3
PAUSE_S = 0.2
# An idle engine repeats itself exactly; other requests in its batch can move a value by rounding.
MIN_DIFFERENCE = 0.005
NOISE_FACTOR = 3.0

Values = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Reference:
    """How the base reads the prompt in one life of the engine, and what counts as different from that."""

    boot_id: str
    values: Values
    limit: float


class Prober:
    """Reads the base once in each life of the engine, twice in a row for its noise, and keeps that as the reference."""

    def __init__(self, engine: Engine, *, base_model: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._engine = engine
        self._base_model = base_model
        self._sleep = sleep
        self._kept: _Reference | None = None

    def probe(self, name: str, *, boot_id: str) -> float:
        """Check the adapter `name`; the largest difference from the base in nats.

        Raises:
            SickEngineError: the base itself gives log-probabilities that are no numbers.
            PoisonError: the adapter does.
            NoEffectError: the adapter reads the prompt like the base.
            ProbeError: another model answers.
            EngineError: the engine doesn't answer.

        """
        reference = self._reference(boot_id)
        difference = 0.0
        for attempt in range(ATTEMPTS):
            if attempt:
                self._sleep(PAUSE_S)
            difference = _difference(reference.values, self._read_adapter(name))
            if difference > reference.limit:
                return difference
        raise NoEffectError(
            f"{name} reads like the base: it differs by {difference:.4f} nats, noise is {reference.limit:.4f}"
        )

    def _reference(self, boot_id: str) -> _Reference:
        if self._kept is None or self._kept.boot_id != boot_id:
            values, again = self._read_base(), self._read_base()
            self._kept = _Reference(boot_id, values, max(MIN_DIFFERENCE, NOISE_FACTOR * _difference(values, again)))
        return self._kept

    def _read_base(self) -> Values:
        values = self._read(self._base_model)
        if not _finite(values):
            raise SickEngineError("the engine's base gives log-probabilities that are no numbers: restart it")
        return values

    def _read_adapter(self, name: str) -> Values:
        values = self._read(name)
        if not _finite(values):
            raise PoisonError(f"{name} gives log-probabilities that are no numbers: the engine must be restarted")
        return values

    def _read(self, model: str) -> Values:
        reading = self._engine.read_prompt(model=model, prompt=PROMPT)
        if reading.model != model:
            raise ProbeError(f"asked for {model}, {reading.model!a} answered")
        return reading.log_probabilities


def _finite(values: Values) -> bool:
    return bool(values) and all(map(math.isfinite, values))


def _difference(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        raise ProbeError(f"one reading of the prompt has {len(one)} tokens, another {len(other)}")
    return max(abs(a - b) for a, b in zip(one, other, strict=True))
