"""Every case of the corpus: what validation says, what vLLM does, and whether the two belong together."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.corpus.archives import ARCHIVES
from bench.corpus.case import Case
from bench.corpus.every import make_all
from bench.corpus.workshop import BASE_NAME
from bench.validation.engine import Fate, LiveEngine, Trial, distance
from bench.validation.reference import TOLERANCE, Reference
from registry.base_models.modules import base_modules
from workers.validation import Limits, Report, check_folder
from workers.validation.archive import unpacked
from workers.validation.base_folder import read_base_folder
from workers.validation.checks import engines
from workers.validation.engines.table import Effect
from workers.validation.engines.traits import Trait

LIMITS: Final = Limits(max_rank=16)
# Traits whose fate depends on more than the table holds: which fields stand in a config, which part of a name is wrong.
_EITHER_WAY: Final = frozenset({Trait.OTHER_TYPE, Trait.EXPERTS, Trait.MISPLACED, Trait.MISSHAPEN})
_FATES: Final = {
    Effect.SERVES: {Fate.ACTS, Fate.SILENT},
    Effect.NEEDS: {Fate.ACTS, Fate.SILENT},
    Effect.LEAKS: {Fate.LEAKS},
    Effect.REFUSES: {Fate.REFUSED},
    Effect.DROPS: {Fate.ACTS, Fate.SILENT},
    Effect.DISTORTS: {Fate.ACTS, Fate.SILENT},
    Effect.POISONS: {Fate.POISONS},
}


@dataclass(frozen=True, slots=True)
class Row:
    """One case: what was said of it, what vLLM did (None if it wasn't asked), how far from PEFT, and what is wrong."""

    case: Case
    verdict: str
    reason: str
    trial: Trial | None
    from_peft: float | None
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bench:
    """What cases are tried with; without an engine only the verdicts are looked at."""

    base_folder: Path
    work: Path
    engine: LiveEngine | None
    reference: Reference | None
    only: frozenset[str] = frozenset()

    def rows(self) -> Iterator[Row]:
        """Try every case."""
        description, _ = read_base_folder(self.base_folder)
        for case, folder in make_all(self.work / "corpus", self.base_folder, base_modules(description)):
            if self.only and case.name not in self.only:
                continue
            report = check_folder(
                folder,
                declared=None,
                base=description,
                limits=LIMITS,
                base_names=(BASE_NAME,),
                base_folder=self.base_folder,
            )
            yield self._row(case, folder, report)

    def _row(self, case: Case, folder: Path, report: Report) -> Row:
        with unpacked(folder, LIMITS) as upload:
            served = folder if case.verdict == "reject" else _kept(upload.folder, report, folder.with_name("served"))
            trial = self.engine.try_adapter(f"bench-{case.name.replace('_', '-')}", served) if self.engine else None
            from_peft = self._from_peft(case, served, trial)
        faults = (
            *_against_expected(case, report),
            *_against_engine(case, report, trial, from_peft),
            *(_against_table(report, trial) if case.kind != ARCHIVES.name else ()),
        )
        return Row(case, report.verdict.value, next(iter(report.reasons), ""), trial, from_peft, faults)

    def _from_peft(self, case: Case, served: Path, trial: Trial | None) -> float | None:
        if case.verdict != "accept" or self.reference is None or trial is None or not trial.values:
            return None
        return distance(self.reference.read(served), trial.values)


def _kept(folder: Path, report: Report, target: Path) -> Path:
    """What a registry keeps of an upload, and hands to its nodes."""
    target.mkdir()
    for file in report.facts.files:
        (target / file.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / file.path, target / file.path)
    return target


def _against_expected(case: Case, report: Report) -> Iterator[str]:
    if report.verdict != case.verdict:
        yield f"validation says {report.verdict.value}, not {case.verdict}"
    if not re.search(case.reason, " ".join(report.reasons), re.IGNORECASE):
        yield f"no reason names {case.reason}"


def _against_engine(case: Case, report: Report, trial: Trial | None, from_peft: float | None) -> Iterator[str]:
    """One that is let in must act, on the base only where that was foretold, and as PEFT has it; else all is well."""
    if trial is None or case.verdict == "reject":
        return
    wanted = Fate.ACTS if case.acts else Fate.SILENT
    if Effect.LEAKS in _told_of_vllm(report).values():
        wanted = Fate.LEAKS
    if trial.fate is not wanted:
        yield f"on vLLM it {trial.fate.value}, where it should have been: {wanted.value}"
    if from_peft is not None and from_peft > TOLERANCE:
        yield f"vLLM is {from_peft:.2f} nats from PEFT"


def _against_table(report: Report, trial: Trial | None) -> Iterator[str]:
    """What the engine table says of vLLM must be what vLLM did, where the table says one thing."""
    told = _told_of_vllm(report)
    if trial is None or not told or told.keys() & _EITHER_WAY:
        return
    worst = max(told.values(), key=list(Effect).index)
    if Effect.REFUSES in told.values() and worst is not Effect.POISONS:
        worst = Effect.REFUSES
    if trial.fate not in _FATES[worst]:
        yield f"the engine table says that vLLM {worst.value}"


def _told_of_vllm(report: Report) -> dict[Trait, Effect]:
    evidence = next(check.evidence for check in report.checks if check.name == engines.NAME).get("vllm")
    rows = evidence["findings"] if isinstance(evidence, dict) else []
    return {Trait(row["trait"]): Effect(row["effect"]) for row in rows}
