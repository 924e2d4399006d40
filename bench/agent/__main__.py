"""``python -m bench.agent``: ten thousand versions on one node, whose engine is the contract server of vLLM.

Every version is fetched from the store, verified, loaded and probed; a thousand then go to the disk and come back from
there; at last some are loaded one after another, to see where the time of a load goes. Printed are commands a second,
the agent's memory, and the shares. The last line says ok or short, and so does the exit status: short if a command
failed, if the agent ever took more memory than the bound, if a phase took longer than it may, or if the whole was
broken off. All of it takes minutes.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import time
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.agent.world import World, node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.unit.workers.node.kit import Release

VERSIONS = 10_000
AGAIN = 1_000
ALONE = 50
# As many as the agent works on at once without refusing one for want of a place in the engine's queue.
WINDOW = 16
BOUND_MIB = 200.0
PHASE_S = 1800.0
STEPS = ("fetch", "verify", "wait", "load", "probe")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.agent")
    parser.add_argument("--versions", type=int, default=VERSIONS)
    parser.add_argument("--phase-seconds", type=float, default=PHASE_S, help="what each phase may take at most")
    options = parser.parse_args(argv)
    # Without it nobody would end the processes that were started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with node(phase_s=options.phase_seconds) as world:
            failed = _run(world, options.versions)
            now, most = world.memory_mib()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # whatever it was, there is a last line
        traceback.print_exc()
        _say(f"bench-agent: short with {options.versions} versions: {type(error).__name__}: {_first_line(error)}")
        return 1
    sound = failed == 0 and most <= BOUND_MIB
    _say(
        f"bench-agent: {'ok' if sound else 'short'} with {options.versions} versions the agent takes {now:.0f} MiB, "
        f"at most {most:.0f} MiB (bound {BOUND_MIB:.0f} MiB); {failed} commands failed"
    )
    return 0 if sound else 1


def _run(world: World, versions: int) -> int:
    """All phases; how many commands failed."""
    with world.phase("signing"):
        _say("signing the versions …")
        releases = [world.release(number) for number in range(versions)]
    _say(f"the agent at rest: {world.memory_mib()[0]:.0f} MiB")
    part = releases[: min(AGAIN, versions)]
    failed = _drive(world, "from the store into the engine", releases, "loaded", partial(world.warm, generation=1))
    failed += _drive(world, "out of the engine, to the disk", part, "on_disk", partial(world.demote, generation=2))
    failed += _drive(world, "from the disk into the engine", part, "loaded", partial(world.warm, generation=3))
    return failed + _alone(world, releases[-min(ALONE, versions) :])


def _drive(world: World, what: str, releases: Sequence[Release], end: str, send: Callable[[Release], None]) -> int:
    """Send a command for each, some ahead; how many failed."""
    began = time.monotonic()
    ends: list[dict[str, Any]] = []
    with world.phase(what):
        for number, release in enumerate(releases):
            send(release)
            if number + 1 - len(ends) >= WINDOW:
                ends += world.collect(end, at_least=1)
        ends += world.collect(end, at_least=len(releases) - len(ends))
    rate = len(releases) / (time.monotonic() - began)
    now, most = world.memory_mib()
    _say(f"{what}: {rate:.0f} commands/s; the agent's memory {now:.0f} MiB, at most {most:.0f} MiB")
    return _failures(ends)


def _alone(world: World, releases: Sequence[Release]) -> int:
    """One after another from the disk, as a request waits for it: from the message to the report."""
    took, ends = [], []
    with world.phase("one after another"):
        for release in releases:
            world.demote(release, generation=4)
            ends += world.collect("on_disk", at_least=1)
            began = time.monotonic()
            world.warm(release, generation=5)
            ends += world.collect("loaded", at_least=1)
            took.append((time.monotonic() - began) * 1000)
    loads = [end["timings_ms"] for end in ends if end["outcome"] == "loaded"]
    if not loads:
        return _failures(ends)
    shares = {step: statistics.median(load.get(step, 0) for load in loads) for step in STEPS}
    whole = statistics.median(took)
    text = ", ".join(f"{step} {ms:.0f} ms ({ms / whole:.0%})" for step, ms in shares.items())
    rest = whole - sum(shares.values())
    _say(f"one load from the disk: {whole:.0f} ms from its message to its report: {text}, the rest {rest:.0f} ms")
    return _failures(ends)


def _failures(ends: Sequence[dict[str, Any]]) -> int:
    failed = [end for end in ends if end["outcome"] == "failed"]
    for end in failed[:3]:
        _say(f"failed: {end['message']}")
    return len(failed)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "broken off")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
