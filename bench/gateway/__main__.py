"""``python -m bench.gateway``: latency, throughput and cost of the gateway beside direct calls and other routers.

One process on one core stands between; stub engines, the client and Postgres are on the other. Stubs and client run in
real time there: Postgres, which stands elsewhere where it's used, would hold them up for 4 ms (a tick) at a time, and
the gateway, which alone writes records, would seem to have been slow. The gateway is compiled, as the image has it
(`python -m deploy.compiled`). All take turns, round after round, and who doesn't is held, so that what else the machine
does hits all alike. The gateway's snapshot holds 10,000 aliases of 500 tenants on 50 nodes. The last line says ok or
short, and so does the exit status.

The promise "15 times the requests per second of the vLLM production-stack's router" needs no arm: that router has
0.087 of vllm-router's (970 against 11,200, measured on one machine), so that 1.3 times the latter is as much.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from bench.gateway.arms import ARMS, Setting, running, standing, stub_process
from bench.gateway.clients import Client
from bench.gateway.figures import CONNECTIONS, DIRECT, OURS, RIVALS, STREAMS, Cell, Figures, Load, checks
from bench.gateway.load import Plan, Tally
from bench.gateway.population import NODES, populate
from bench.gateway.processes import OTHERS_CORE, come_first
from bench.revocation.world import stage
from deploy.embedded.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.gateway.arms import Arm

# What a stream costs depends on how the streams' ticks fall together, which a turn settles at its beginning.
_STREAM_TURNS = 4
_TURNS = (*(Load(connections) for connections in CONNECTIONS), *[STREAMS] * _STREAM_TURNS)
_TARGETS = 256
_ALL_RECORDED_S = 30.0
# The slowest need no repetition to be told from the others, but more time to answer at all.
_ONCE = frozenset({"litellm", "vllm-router-all"})
_ONCE_S = 3.0


def main() -> int:
    options = _parser().parse_args()
    logging.disable(logging.WARNING)
    os.sched_setaffinity(0, {OTHERS_CORE})
    figures = Figures()
    folders = tempfile.TemporaryDirectory(prefix="lorekeeper-bench-")
    with folders as folder, stage() as found, stub_process(NODES) as (stub, engines):
        hosted = populate(engines)
        picked = hosted[:: len(hosted) // _TARGETS]
        with standing(Setting(engines, picked, found.postgres, Path(folder)), options.arms) as arms:
            if not come_first(0, stub.process.pid):
                sys.stdout.write("real time isn't allowed here (CAP_SYS_NICE): p99 of lorekeeper shows Postgres, too\n")
            for number in range(options.rounds):
                _round(arms, figures, options.seconds, number)
            figures.recorded = _recorded(arms, figures.served(OURS))
            return _report(figures, options.arms)


def _round(arms: Sequence[Arm], figures: Figures, seconds: float, number: int) -> None:
    for load in _TURNS:
        for arm in arms:
            if arm.name in _ONCE and figures.cells[arm.name, load]:
                continue
            with running(arm):
                turn = _ONCE_S if arm.name in _ONCE else seconds
                figures.cells[arm.name, load].append(measure(arm, load, turn))
                if arm.between is not None:
                    figures.resident_mb[arm.name] = arm.between.resident_mb
    sys.stdout.write(f"round {number + 1} done\n")
    sys.stdout.flush()


def _recorded(arms: Sequence[Arm], wanted: int) -> int:
    """How many requests the database has a record of, once these are all or time is up."""
    from cachecontrol.models import GatewayRequest  # noqa: PLC0415  Django is set up by now

    count, ends = 0, time.monotonic() + _ALL_RECORDED_S
    with ExitStack() as held:
        for arm in arms:
            if arm.name == OURS:
                held.enter_context(running(arm))
        while count < wanted and time.monotonic() < ends:
            time.sleep(1)
            count = GatewayRequest.objects.count()
    return count


def measure(arm: Arm, load: Load, seconds: float) -> Cell:
    """Put one load on one arm."""
    before = 0.0 if arm.between is None else arm.between.cpu_s
    tally = ask(arm, load, seconds)
    after = 0.0 if arm.between is None else arm.between.cpu_s
    return Cell.of(tally, cpu_s=after - before)


def ask(arm: Arm, load: Load, seconds: float) -> Tally:
    """Run the client and wait for its end."""
    return Client.start(
        Plan(
            host=LOOPBACK,
            port=arm.port,
            connections=load.connections,
            seconds=seconds,
            stream=load.stream,
            targets=arm.targets,
        )
    ).result()


def _report(figures: Figures, names: Sequence[str]) -> int:
    sys.stdout.write(
        f"{'':16}"
        + "".join(f"{f'+p50/p99 ms @{n}':>20}" for n in CONNECTIONS)
        + f"{'+first chunk ms':>16}{'requests/s':>12}{'CPU us':>9}{'CPU us/stream':>15}{'RSS MB':>8}{'bad':>6}\n"
    )
    for name in names:
        sys.stdout.write(_line(figures, name))
    if not {DIRECT, OURS, *RIVALS} <= set(names):
        return 0
    found = checks(figures)
    verdict = "ok" if all(check.is_kept for check in found) else "short"
    sys.stdout.write(f"bench-gateway: {verdict} {', '.join(map(str, found))}\n")
    return 0 if verdict == "ok" else 1


def _line(figures: Figures, name: str) -> str:
    """Direct calls are shown as they are, all others as what they add."""
    look = figures.median if name == DIRECT or DIRECT not in {arm for arm, _load in figures.cells} else figures.added
    pairs = [(look(name, Load(n), "p50"), look(name, Load(n), "p99")) for n in CONNECTIONS]
    latency = "".join(f"{f'{p50:.3f} / {p99:.3f}':>20}" for p50, p99 in pairs)
    busiest = Load(CONNECTIONS[-1])
    return (
        f"{name:16}{latency}{look(name, STREAMS, 'first'):>16.3f}{figures.median(name, busiest, 'rate'):>12,.0f}"
        f"{figures.median(name, busiest, 'cpu_us'):>9.1f}{figures.median(name, STREAMS, 'cpu_us'):>15.0f}"
        f"{figures.resident_mb.get(name, 0):>8.0f}{'/'.join(map(str, figures.bad(name))):>6}\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=__doc__)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS), help="what to compare (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a turn (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
