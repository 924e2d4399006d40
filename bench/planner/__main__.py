"""``python -m bench.planner``: 1,000 nodes x 10,000 versions planned from scratch, after one change, and step by step.

Beside it, in the same run, what one would write first: hashing modulo the number of nodes, planning anew after every
change, and placement without a look at load and ranks. The last line says ok or short, and so does the exit status.
Times are of one core (processor time of this process, which has one thread), so that other work on the machine
doesn't count.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from bench.planner import world
from bench.planner.checks import violations
from bench.planner.rhythm import prediction_errors
from bench.planner.steps import applied
from cachecontrol.placement.changes import Step, between
from cachecontrol.placement.facts import NOTHING, Holding, Plan, PlanSettings
from cachecontrol.placement.plan import make_plan
from cachecontrol.placement.rendezvous import version_seed
from cachecontrol.placement.replan import (
    Change,
    NodeChanged,
    NodeGone,
    VersionChanged,
    VersionGone,
    after,
    changes_since,
    resting_on,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachecontrol.placement.facts import PlannedNode, PlannedVersion

T = TypeVar("T")

SCRATCH_S, REPLAN_MS, MOVED = 5.0, 100.0, 0.02
ROUNDS, LEAVING, COMMANDS_PER_PASS = 3, 10, 50
# Places for everything several times over, and for hardly anything.
ROOMY, TIGHT = 64, 8


@dataclass(slots=True)
class Figures:
    """The worst of each kind that was seen; ``faults`` are plans that do what none may."""

    scratch_s: float = 0.0
    replan_ms: float = 0.0
    moved: float = 0.0
    faults: int = 0

    def is_ok(self) -> bool:
        return self.scratch_s < SCRATCH_S and self.replan_ms < REPLAN_MS and self.moved <= MOVED and not self.faults


def main() -> int:
    figures = Figures()
    versions = world.versions()
    for places, what in ((ROOMY, "room for all"), (TIGHT, "room for few")):
        fleet = world.nodes(places)
        plan = _from_scratch(figures, fleet, versions, what)
        _replanned(figures, plan)
        _a_node_leaves(figures, plan, versions)
        _step_by_step(figures, plan)
    _load_and_ranks(world.nodes(ROOMY), versions)
    _prediction()
    verdict = "ok" if figures.is_ok() else "short"
    _say(
        f"bench-planner: {verdict} {world.NODES} nodes x {world.VERSIONS} versions: from scratch "
        f"{figures.scratch_s:.2f} s (bound {SCRATCH_S:.0f}), after one change {figures.replan_ms:.0f} ms (bound "
        f"{REPLAN_MS:.0f}), {figures.moved:.2%} moved when a node leaves (bound {MOVED:.0%}), {figures.faults} faults"
    )
    return 0 if verdict == "ok" else 1


def _from_scratch(figures: Figures, fleet: list[PlannedNode], versions: list[PlannedVersion], what: str) -> Plan:
    took = []
    for _round in range(ROUNDS):
        seconds, plan = _timed(lambda: make_plan(fleet, versions, PlanSettings()))
        took.append(seconds)
    again_s, again = _timed(lambda: make_plan(fleet, versions, PlanSettings(), previous=plan))
    figures.scratch_s = max(figures.scratch_s, *took)
    figures.faults += len(violations(plan)) + (again != plan)
    copies, hot = (sum(map(len, kind.values())) for kind in (plan.loaded, plan.hot))
    _say(
        f"{what}: from scratch {statistics.median(took):.2f} s (worst {max(took):.2f}), the same facts again "
        f"{again_s:.2f} s; {copies} copies on {len(plan.loaded)} nodes, {hot} hot, "
        f"{sum(map(len, plan.disk.values()))} on disk alone, {len(plan.unplaced)} versions without a place"
    )
    return plan


def _replanned(figures: Figures, plan: Plan) -> None:
    rng = random.Random(2)  # noqa: S311  an example, not a secret
    anew, _plan = _timed(lambda: make_plan(list(plan.nodes.values()), _versions(plan), plan.settings))
    for kind, changes in _changes(plan, rng).items():
        took = []
        for change in changes:
            facts = _facts_after(plan, change)
            seconds, changed = _timed(lambda facts=facts: _taken_in(plan, *facts))  # type: ignore[misc]
            took.append(seconds * 1000)
            figures.faults += len(violations(changed, plan)) + (make_plan(*facts, plan.settings, changed) != changed)
        figures.replan_ms = max(figures.replan_ms, *took)
        _say(
            f"  after {kind}: {statistics.median(took):.0f} ms (worst {max(took):.0f}); "
            f"planning anew takes {anew * 1000 / statistics.median(took):.0f} times as long"
        )


def _changes(plan: Plan, rng: random.Random) -> dict[str, list[Change]]:
    used = rng.sample(sorted(plan.loaded), LEAVING)
    needs = rng.sample([plan.needs[version_id] for version_id in sorted(plan.needs)], LEAVING)
    joining = [replace(plan.nodes[name], name=f"new-{name}") for name in used]
    hotter = [replace(need.version, rate_per_h=2e4, keep=math.log(2e4)) for need in needs]
    return {
        "a node is lost": [NodeChanged(replace(plan.nodes[name], is_up=False)) for name in used],
        "a node is cordoned": [NodeChanged(replace(plan.nodes[name], is_cordoned=True)) for name in used],
        "a node joins": [NodeChanged(node) for node in joining],
        "a version gets hot": [VersionChanged(version) for version in hotter],
        "a version is revoked": [VersionGone(need.id) for need in needs],
    }


def _facts_after(plan: Plan, change: Change) -> tuple[list[PlannedNode], list[PlannedVersion]]:
    nodes, versions = dict(plan.nodes), {version.version_id: version for version in _versions(plan)}
    if isinstance(change, NodeChanged):
        nodes[change.node.name] = change.node
    elif isinstance(change, NodeGone):
        del nodes[change.name]
    elif isinstance(change, VersionChanged):
        versions[change.version.version_id] = change.version
    else:
        del versions[change.version_id]
    return list(nodes.values()), list(versions.values())


def _taken_in(plan: Plan, nodes: list[PlannedNode], versions: list[PlannedVersion]) -> Plan:
    """All that a worker decides once it has read the facts: what has changed, the plan, and the next moves."""
    changes = changes_since(plan, nodes=nodes, versions=versions)
    held = changed = resting_on(plan, plan, changes)
    for change in changes:
        changed = after(changed, change)
    between(changed, held.only(changed.needs), limit=COMMANDS_PER_PASS)
    return changed


def _a_node_leaves(figures: Figures, plan: Plan, versions: list[PlannedVersion]) -> None:
    """Pairs of node and version that are new, against all pairs."""
    names = sorted(plan.loaded, key=lambda name: (-len(plan.loaded[name]), name))[:LEAVING]
    replanned = [_moved(plan, after(plan, NodeGone(name))) for name in names]
    rest = [node for node in plan.nodes.values() if node.name != names[0]]
    kept = _moved(plan, make_plan(rest, versions, plan.settings, previous=plan))
    anew = _moved(plan, make_plan(rest, versions, plan.settings))
    figures.moved = max(figures.moved, kept, *replanned)
    _say(
        f"  a node leaves: {max(replanned):.3%} moved (worst of {LEAVING}), by a whole plan that keeps what it can "
        f"{kept:.3%}; planned anew {anew:.1%}, modulo hashing {_moved_by_modulo(plan):.1%}"
    )


def _moved(was: Holding, now: Holding) -> float:
    total = new = 0
    for kind_was, kind_now in ((was.loaded, now.loaded), (was.disk, now.disk)):
        total += sum(map(len, kind_was.values()))
        new += sum(len(held - kind_was.get(name, NOTHING)) for name, held in kind_now.items())
    return new / total


def _moved_by_modulo(plan: Plan) -> float:
    seeds = [version_seed(version_id) for version_id in plan.needs]
    names = sorted(plan.nodes)
    fewer = [name for name in names if name != names[len(names) // 2]]
    return sum(names[seed % len(names)] != fewer[seed % len(fewer)] for seed in seeds) / len(seeds)


def _step_by_step(figures: Figures, plan: Plan) -> None:
    """Drain one node in bounded passes; every version that was loaded stays loaded somewhere all the time."""
    name = max(plan.loaded, key=lambda name: (len(plan.loaded[name]), name))
    target = after(plan, NodeChanged(replace(plan.nodes[name], is_draining=True)))
    held: Holding = plan
    passes, commands, took = 0, 0, []
    lost: set[object] = set()
    while True:
        seconds, moves = _timed(lambda held=held: between(target, held, limit=COMMANDS_PER_PASS))  # type: ignore[misc]
        if not moves:
            break
        took.append(seconds * 1000)
        passes, commands = passes + 1, commands + sum(move.step not in {Step.COOL, Step.HEAT} for move in moves)
        for move in moves:
            held = applied(held, [move])
            if move.step in {Step.DEMOTE, Step.DROP} and target.needs[move.version_id].replicas:
                lost |= {move.version_id} - {version for there in held.loaded.values() for version in there}
    lost -= set(target.unplaced)
    figures.faults += len(lost) + any(kind.get(name) for kind in (held.loaded, held.disk))
    _say(
        f"  draining {name} with {len(plan.loaded[name])} versions: {commands} commands in {passes} passes of at most "
        f"{COMMANDS_PER_PASS}, {max(took):.0f} ms each at most, {len(lost)} versions nowhere meanwhile"
    )


def _load_and_ranks(fleet: list[PlannedNode], versions: list[PlannedVersion]) -> None:
    """What bounding the load and looking at ranks is good for, against rendezvous hashing alone."""
    full = PlanSettings(consolidates=False, requests_per_h_per_node=1_200.0, max_replicas=64)
    plain = replace(full, choices=1, load_factor=math.inf, leave_factor=math.inf)
    for what, settings in (("bounded load, ranks together", full), ("rendezvous hashing alone", plain)):
        plan = make_plan(fleet, versions, settings)
        rates = {
            name: sum(plan.needs[version_id].share_per_h for version_id in held) for name, held in plan.loaded.items()
        }
        highest = {
            name: max(plan.needs[version_id].version.rank for version_id in held) for name, held in plan.loaded.items()
        }
        cost = sum(rates[name] * highest[name] for name in rates) / sum(rates.values())
        peak = max(rates.values()) / (sum(rates.values()) / len(fleet))
        _say(f"{what}: the busiest node has {peak:.2f} times the mean load; a request meets rank {cost:.0f} on average")


def _prediction() -> None:
    errors = prediction_errors()
    _say(
        "the next half hour of versions with a daily and weekly rhythm: "
        + ", ".join(f"{what} is off by {error:.0%}" for what, error in errors.items())
    )


def _versions(plan: Plan) -> list[PlannedVersion]:
    return [need.version for need in plan.needs.values()]


def _timed(act: Callable[[], T]) -> tuple[float, T]:
    gc.collect()
    began = time.process_time()
    answer = act()
    return time.process_time() - began, answer


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
