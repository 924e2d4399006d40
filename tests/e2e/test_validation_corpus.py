"""The bench's corpus without an engine: every kind of adapter gets its verdict, and a reason that names the cause."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.corpus.every import CASES, make_all
from bench.corpus.workshop import BASE_NAME
from bench.validation.engine import Fate, Trial
from bench.validation.trials import Bench
from deploy.demo.materials import DEFAULT_CACHE, ensure_base_model
from registry.base_models.modules import base_modules
from workers.validation import Limits, check_folder
from workers.validation.base_folder import read_base_folder

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]


def test_names_of_cases_are_unique_and_each_verdict_has_many() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    verdicts = Counter(case.verdict for case in CASES)
    assert min(verdicts.values()) >= 20
    assert sum(verdicts.values()) >= 60


@pytest.mark.parametrize("names", [(BASE_NAME,), ()], ids=["with the base's name", "with its folder alone"])
def test_every_case_gets_its_verdict_and_a_reason_that_names_the_cause(tmp_path: Path, names: tuple[str, ...]) -> None:
    base_folder, _ = ensure_base_model(ROOT / DEFAULT_CACHE)
    base, hints = read_base_folder(base_folder)
    wrong = {}
    for case, folder in make_all(tmp_path, base_folder, base_modules(base)):
        report = check_folder(
            folder,
            declared=None,
            base=base,
            limits=Limits(max_rank=16),
            base_names=names,
            base_hints=hints,
            base_folder=base_folder,
        )
        reasons = " ".join(report.reasons)
        if report.verdict != case.verdict or not re.search(case.reason, reasons, re.IGNORECASE):
            wrong[case.name] = (report.verdict.value, reasons)
    # A folder's name is no name: it can't tell a model from the one before its instruction.
    assert wrong.keys() <= (set() if names else {"the_base_before_instruction"})


@dataclass
class StubEngine:
    """Says the same of every adapter."""

    fate: Fate

    def try_adapter(self, name: str, path: Path) -> Trial:
        """Make of the adapter what was said at the start."""
        return Trial(self.fate, "loads")


@pytest.mark.parametrize(
    ("name", "fate", "wrong"),
    [
        ("on_a_tied_head", Fate.LEAKS, ()),
        ("on_a_tied_head", Fate.ACTS, ("on vLLM it acts", "the engine table says that vLLM serves, and may change")),
        ("on_a_tied_embedding", Fate.ACTS, ()),
        ("on_a_tied_embedding", Fate.LEAKS, ("on vLLM it acts on the base too",)),
        ("plain", Fate.LEAKS, ("on vLLM it acts on the base too",)),
        ("alora", Fate.REFUSED, ()),
        ("alora", Fate.ACTS, ("the engine table says that vLLM refuses",)),
        ("alora_by_a_text", Fate.ACTS, ()),
        ("alora_by_a_text", Fate.REFUSED, ("the engine table says that vLLM serves something else",)),
    ],
)
def test_what_an_engine_does_is_held_against_what_was_foretold(
    tmp_path: Path, name: str, fate: Fate, wrong: tuple[str, ...]
) -> None:
    base_folder, _ = ensure_base_model(ROOT / DEFAULT_CACHE)
    bench = Bench(base_folder, tmp_path, StubEngine(fate), None, frozenset({name}))  # type: ignore[arg-type]
    (row,) = bench.rows()
    assert len(row.faults) == len(wrong), row.faults
    assert all(fault.startswith(start) for fault, start in zip(row.faults, wrong, strict=True))
