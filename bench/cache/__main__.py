"""``make bench-cache``: one real vLLM, 40 versions of 5 tenants, a skewed load, twice: by hand, then by Lorekeeper.

Both arms get the same load, an engine started in the same way, the same disk budget and the same distant store. The
last line says ok or short, and so does the exit status: ok if no answer was wrong, none came from another version than
the resolved one, no engine ended, every quota was held, all was answered, and misses, the 95th percentile of the time
to the first token and the bytes that the engine read are all below those of the engine that was driven by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import math
import os
import sys
import tempfile
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cache.adapters import build_adapters
from bench.cache.arms import Materials, by_hand, by_lorekeeper
from bench.cache.base import cut_base
from bench.cache.load import arrivals, shares
from bench.cache.plan import MIB, Plan
from deploy.demo.materials import DEFAULT_CACHE, ensure_base_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.cache.arms import Outcome


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures of both arms and their ratios; 0 if all is as it must be."""
    logging.getLogger("httpx").setLevel(logging.WARNING)
    plan, began = _plan(arguments), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lorekeeper-bench-", ignore_cleanup_errors=True) as scratch:
        work = Path(scratch)
        work.chmod(0o711)  # Postgres runs as another account
        base = cut_base(ensure_base_model(DEFAULT_CACHE)[0], work / "base", layers=plan.layers)
        python = Path(os.environ.get("LOREKEEPER_VLLM_PYTHON", ".venv-vllm/bin/python")).absolute()
        versions = build_adapters(work / "versions", base, plan)
        load = arrivals(plan)
        materials = Materials(work=work, python=python, base=base, versions=versions, load=load, plan=plan)
        _say_plan(materials)
        naive = asyncio.run(by_hand(materials))
        _say_all("driven by hand: ", naive.figures.lines())
        kept = asyncio.run(by_lorekeeper(materials, naive.voices))
        _say_all("by Lorekeeper:  ", [*kept.figures.lines(), *kept.notes])
    return conclude(naive, kept, time.monotonic() - began)


def _plan(arguments: Sequence[str] | None) -> Plan:
    """The plan, with what the command line says of its numbers."""
    parser = argparse.ArgumentParser(prog="python -m bench.cache")
    numbers = {entry.name: entry.type for entry in fields(Plan) if entry.name != "ranks"}
    for name, kind in numbers.items():
        default = getattr(Plan(), name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=int if kind == "int" else float, default=default)
    return replace(Plan(), **vars(parser.parse_args(arguments)))


def _say_plan(materials: Materials) -> None:
    plan, load = materials.plan, materials.load
    total = sum(version.size for version in materials.versions)
    popular = ", ".join(f"{share:.1%}" for share in shares(load)[:5])
    say(
        f"load: {len(load)} requests in {load[-1].at:.0f} s ({plan.rate:g}/s), sessions of {plan.session:g} with "
        f"pauses of {plan.think_s:g} s, {plan.versions} versions of {plan.tenants} tenants by Zipf {plan.exponent:g} "
        f"(the first five got {popular}), two change places every {plan.drift_s:g} s, {plan.tokens} tokens "
        f"each, seed {plan.seed}"
    )
    say(
        f"engine: vLLM on the CPU, {plan.gpu_slots} GPU and {plan.places} CPU slots, one sequence at a time, the first "
        f"{plan.layers} layers of SmolLM2-135M; ranks {'/'.join(map(str, plan.ranks))}, {total / MIB:.0f} MiB of "
        f"adapters, {plan.disk_share:.0%} of them fit on the disk"
    )
    say(f"origin: {plan.latency_s * 1000:g} ms to the first byte, {plan.bytes_per_s / MIB:g} MiB/s in all")


def conclude(naive: Outcome, kept: Outcome, seconds: float) -> int:
    """Say the ratios, and what is short of what must be; the exit status."""
    by_hand_figures, ours = naive.figures, kept.figures
    ratios = {
        "misses": _ratio(ours.misses, by_hand_figures.misses),
        "p95 to the first token": _ratio(ours.p95_ms, by_hand_figures.p95_ms),
        "bytes loaded": _ratio(ours.loaded_bytes, by_hand_figures.loaded_bytes),
    }
    downloaded = _ratio(ours.downloaded_bytes, by_hand_figures.downloaded_bytes)
    say(f"bytes downloaded: {downloaded:.2f} of those driven by hand")
    faults = [
        *(f"{name} not better ({ratio:.2f})" for name, ratio in ratios.items() if ratio >= 1),
        *kept.faults,
        *(f"by hand: {fault}" for fault in naive.faults),
    ]
    listed = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    say(
        f"bench-cache: {'short' if faults else 'ok'} of the same engine driven by hand: {listed}; wrong {ours.wrong}, "
        f"misrouted {ours.misrouted}, answered {ours.answered} of {ours.requests}, {seconds:.0f} s"
        f"{'; ' + '; '.join(faults) if faults else ''}"
    )
    return 1 if faults else 0


def _ratio(ours: float, by_hand: float) -> float:
    """Nothing is better than an arm that did nothing."""
    return ours / by_hand if by_hand else math.inf


def _say_all(title: str, lines: Sequence[str]) -> None:
    for line in lines:
        say(title + line)


def say(line: str) -> None:
    """Print at once: a run takes minutes."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
