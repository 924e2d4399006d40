"""What the bench makes of an adapter by what the base answers after it: the live engine with its answers made up."""

import math
from pathlib import Path
from typing import Any

import pytest

from bench.validation.engine import Fate, LiveEngine, Trial
from workers.node.errors import EngineRefusedError

BASE = (-1.0, -2.0)
ACTED = Trial(Fate.ACTS, "loads", 0.4, (-1.4, -2.4))


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveEngine:
    engine = LiveEngine(tmp_path, Path("python"), tmp_path, max_rank=16)
    engine.base = BASE

    def start() -> None:
        engine.starts += 1

    monkeypatch.setattr(engine, "_start", start)
    monkeypatch.setattr(engine, "_tried", lambda *_: ACTED)
    return engine


def tried(engine: LiveEngine, monkeypatch: pytest.MonkeyPatch, afterwards: Any) -> Trial:
    def read(_: str) -> tuple[float, ...]:
        if isinstance(afterwards, Exception):
            raise afterwards
        return tuple(afterwards)

    monkeypatch.setattr(engine, "_read", read)
    return engine.try_adapter("one", Path("one"))


def test_an_engine_that_answers_for_the_base_as_before_goes_on(
    engine: LiveEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tried(engine, monkeypatch, BASE) == ACTED
    assert engine.starts == 0


def test_a_base_that_is_off_afterwards_is_told_with_how_far_and_started_anew(
    engine: LiveEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = tried(engine, monkeypatch, (-1.2, -2.2))
    assert (trial.fate, trial.difference) == (Fate.LEAKS, ACTED.difference)
    assert "0.20 nats off" in trial.said
    assert engine.starts == 1


@pytest.mark.parametrize("afterwards", [(math.nan,), EngineRefusedError("HTTP 400: no")], ids=["NaN", "an error"])
def test_a_base_that_has_no_answer_afterwards_is_poisoned(
    engine: LiveEngine, monkeypatch: pytest.MonkeyPatch, afterwards: Any
) -> None:
    trial = tried(engine, monkeypatch, afterwards)
    assert trial.fate is Fate.POISONS
    assert engine.starts == 1


def test_the_one_slot_of_the_engine_is_its_last(engine: LiveEngine) -> None:
    command = engine._server.spec.command()
    assert command[command.index("--max-loras") + 1] == "1"
