"""``python -m bench.replay``: eviction policies side by side on a synthetic day, or on ``--trace FILE``.

Each replays the same requests on an empty node that has room for a share of the versions, by places (an engine's) and
by bytes (a disk, or a byte budget); every miss comes from the object store. On the synthetic day the last line says ok
or short, and so does the exit status: ok if in every room density's priority-weighted cost is below that of lru and at
most a few percent above the least of all.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.replay.raw import RawWeightedLru
from bench.replay.synthetic import Fleet, day
from cachecontrol.replay.formats import read_trace
from cachecontrol.replay.report import as_text, compare
from cachecontrol.replay.simulate import NodeShape
from cachecontrol.scoring.make import POLICY_NAMES, make_policy
from cachecontrol.scoring.settings import ScoringSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cachecontrol.replay.report import Line
    from cachecontrol.replay.trace import Trace

PLACES, BYTES = (0.03, 0.12), (0.10,)
BOUND = 1.05


def main() -> int:
    trace = _asked_for()
    say(
        f"{trace.name}: {trace.total_requests} requests for {trace.versions} versions of {len(trace.weight)} tenants, "
        f"{trace.size_mib.sum() / 1024:.0f} GiB of files"
    )
    results = [_side_by_side(trace, what, shape) for what, shape in _rooms(trace)]
    if trace.name != "synthetic":
        return 0
    worst = max(_above_the_least(lines) for lines in results)
    below = sum(_is_below_lru(lines) for lines in results)
    sound = worst <= BOUND and below == len(results)
    say(
        f"\nbench-replay: {'ok' if sound else 'short'} density costs up to {worst - 1:.1%} more than the least "
        f"(bound {BOUND - 1:.0%}), weighted by priority; and less than lru in {below} of {len(results)}"
    )
    return 0 if sound else 1


def _asked_for() -> Trace:
    parser = argparse.ArgumentParser(prog="bench.replay")
    parser.add_argument("--trace", type=Path, help="a trace of another fleet in place of the synthetic day")
    asked = parser.parse_args()
    if asked.trace is None:
        return day(Fleet())
    with asked.trace.open("rb") as source:
        return read_trace(source, name=asked.trace.name)


def _rooms(trace: Trace) -> Iterator[tuple[str, NodeShape]]:
    for share in PLACES:
        places = max(round(share * trace.versions), 1)
        yield f"{places} places", NodeShape(gpu_slots=min(16, places), places=places)
    for share in BYTES:
        room = float(share * trace.size_mib.sum())
        yield f"{room / 1024:.0f} GiB", NodeShape(places=trace.versions, memory_mib=room)


def _side_by_side(trace: Trace, what: str, shape: NodeShape) -> Sequence[Line]:
    settings = ScoringSettings()
    policies = [*(make_policy(name, settings) for name in POLICY_NAMES), RawWeightedLru(settings)]
    began = time.perf_counter()
    lines = compare(trace, policies, settings, shape)
    say(f"\nroom for {what} ({(time.perf_counter() - began) / len(policies):.1f} s a policy)\n{as_text(lines)}")
    return lines


def _above_the_least(lines: Sequence[Line]) -> float:
    """Density's priority-weighted cost by the least there is."""
    costs = _costs(lines)
    return costs["density"] / min(costs.values())


def _is_below_lru(lines: Sequence[Line]) -> bool:
    costs = _costs(lines)
    return costs["density"] < costs["lru"]


def _costs(lines: Sequence[Line]) -> dict[str, float]:
    return {line.policy: line.tally.weighted_cost_ms for line in lines}


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
