"""The bench's corpus without an engine: every kind of adapter gets its verdict, and a reason that names the cause."""

import re
from collections import Counter
from pathlib import Path

import pytest

from bench.corpus.every import CASES, make_all
from bench.corpus.workshop import BASE_NAME
from deploy.demo.materials import DEFAULT_CACHE, ensure_base_model
from workers.validation import Limits, check_folder
from workers.validation.base_folder import read_base_folder
from workers.validation.modules import base_modules

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
