"""Run it: the corpus on the checks and on a real vLLM, and the bound of an 8B-shaped adapter."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.corpus.every import CASES
from bench.validation.bound import Bound, measure
from bench.validation.engine import TEXT, LiveEngine
from bench.validation.reference import Reference
from bench.validation.trials import LIMITS, Bench, Row
from deploy.demo.base_model import ensure_base_model

_NAME, _VERDICT, _FATE, _NUMBER = 44, 7, 22, 6
_MAX_REASON = 110


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the bound; 0 if all is as it must be."""
    options = _options(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lorekeeper-bench-") as scratch, ExitStack() as stack:
        work = Path(scratch)
        bounds = measure(work / "8b")
        base_folder = ensure_base_model(options.cache)
        engine = None if options.skip_engine else stack.enter_context(_engine(base_folder, work))
        reference = None if options.skip_engine else Reference(base_folder, TEXT)
        rows = _printed(Bench(base_folder, work, engine, reference, frozenset(options.only)).rows())
        starts = engine.starts if engine else 0
    for bound in bounds:
        _say(bound.sentence())
    return _summed_up(rows, bounds, starts, time.monotonic() - began)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.validation")
    parser.add_argument("--cache", type=Path, default=Path(".lorekeeper-cache"), help="where the base model is kept")
    parser.add_argument("--only", nargs="*", default=[], choices=[case.name for case in CASES], metavar="CASE")
    parser.add_argument("--skip-engine", action="store_true", help="look at verdicts and the bound alone")
    return parser.parse_args(arguments)


def _engine(base_folder: Path, work: Path) -> LiveEngine:
    python = Path(os.environ.get("LOREKEEPER_VLLM_PYTHON", ".venv-vllm/bin/python"))
    return LiveEngine(work / "engine", python.absolute(), base_folder, max_rank=LIMITS.max_rank)


def _printed(rows: Iterable[Row]) -> list[Row]:
    _say(f"{'case':{_NAME}} {'verdict':{_VERDICT}} {'vLLM':{_FATE}} {'d base':>{_NUMBER}} {'d PEFT':>{_NUMBER}}  why")
    printed = []
    for row in rows:
        _say(_line(row))
        printed.append(row)
    return printed


def _line(row: Row) -> str:
    """One row; beside the reason stands what vLLM said, where it said anything."""
    trial = row.trial
    name = f"{row.case.kind}: {row.case.name.replace('_', ' ')}"
    fate = trial.fate.value if trial else "not asked"
    said = f" | vLLM: {trial.said}" if trial and trial.said not in {"", "loads"} else ""
    numbers = [_number(trial.difference if trial else None), _number(row.from_peft)]
    wrong = f"  WRONG: {'; '.join(row.faults)}" if row.faults else ""
    return (
        f"{name:{_NAME}} {row.verdict:{_VERDICT}} {fate:{_FATE}} {numbers[0]} {numbers[1]}  "
        f"{row.reason[:_MAX_REASON]}{said}{wrong}"
    )


def _number(value: float | None) -> str:
    return ("-" if value is None else f"{value:.3f}").rjust(_NUMBER)


def _summed_up(rows: Sequence[Row], bounds: Sequence[Bound], starts: int, seconds: float) -> int:
    wrong = [row.case.name for row in rows if row.faults]
    fates = Counter(row.trial.fate.value for row in rows if row.trial and row.verdict == "reject")
    if fates:
        listed = ", ".join(f"{count} {fate}" for fate, count in fates.most_common())
        _say(f"of the refused, on vLLM: {listed}")
    verdicts = Counter(row.verdict for row in rows)
    ratio = max(bound.ratio for bound in bounds)
    is_ok = not wrong and all(bound.is_kept for bound in bounds)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    which = f" ({', '.join(wrong)})" if wrong else ""
    engine = f"vLLM started {starts} times" if starts else "vLLM not asked"
    _say(
        f"bench-validation: {'ok' if is_ok else 'short'} {len(rows)} adapters ({counts}), {len(wrong)} wrong{which}, "
        f"{engine}, {ratio:.2f} x read and hash, {seconds:.0f} s"
    )
    return 0 if is_ok else 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
