"""``python -m bench.coldpath``: from a cold request to the command at the node, and from the node's word to the engine.

The node loads at once, so what is left is what Lorekeeper itself adds to a cold load. Each request is for another
version; the node is full, so that each makes another one leave. No worker runs: none is needed for a demand. The last
line says ok or short, and so does the exit status.
"""

from __future__ import annotations

import logging
import statistics
import sys
import time
from dataclasses import dataclass

import httpx

from bench.coldpath.node import InstantNode
from bench.coldpath.world import Arrivals, World, cold_world, web_and_gateway
from bench.revocation.world import fill, stage

COMMAND_BOUND_MS = 30.0
OUTCOME_BOUND_MS = 50.0
ROUNDS = 40
WARM_UP = 5
SIZES = (0, 5000)
_SETTLE_S = 0.1


@dataclass(frozen=True, slots=True)
class Took:
    """Milliseconds of a cold request: until the node had the command; from its word to the engine; in all."""

    command: float
    outcome: float
    total: float


def main() -> int:
    logging.disable(logging.WARNING)
    arrivals = Arrivals()
    with stage() as found, arrivals.served() as engine_url:
        worst = [_measure(World(found, engine_url, arrivals), size) for size in SIZES]
    command, outcome = max(one.command for one in worst), max(one.outcome for one in worst)
    verdict = "ok" if command <= COMMAND_BOUND_MS and outcome <= OUTCOME_BOUND_MS else "short"
    sys.stdout.write(
        f"bench-coldpath: {verdict} median demand to command {command:.1f} ms (bound {COMMAND_BOUND_MS:.0f}), "
        f"p90 outcome to engine {outcome:.1f} ms (bound {OUTCOME_BOUND_MS:.0f})\n"
    )
    return 0 if verdict == "ok" else 1


def _measure(world: World, size: int) -> Took:
    """The median until the command, the p90 from the outcome on, beside ``size`` other versions."""
    fill(size)
    cold = cold_world(world.engine_url, ROUNDS + WARM_UP)
    with web_and_gateway(world.found, cold) as urls:
        node = InstantNode(world.broker_url, f"node.{cold.node}", urls.web, cold.node_token)
        node.start()
        took = [_ask(world, urls.gateway, cold.key, alias, name, node) for alias, name in cold.targets][WARM_UP:]
        node.stopped.set()
        node.join()
    commands, outcomes = sorted(one.command for one in took), sorted(one.outcome for one in took)
    p90 = int(len(took) * 0.9)
    sys.stdout.write(
        f"{size:>6} other versions, {len(took)} cold requests: request to command median "
        f"{statistics.median(commands):.1f} ms, p90 {commands[p90]:.1f} ms; outcome to engine median "
        f"{statistics.median(outcomes):.1f} ms, p90 {outcomes[p90]:.1f} ms, worst {outcomes[-1]:.1f} ms; whole request "
        f"median {statistics.median(one.total for one in took):.1f} ms\n"
    )
    return Took(statistics.median(commands), outcomes[p90], 0.0)


def _ask(world: World, url: str, key: str, alias: str, name: str, node: InstantNode) -> Took:
    began = time.monotonic()
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=30) as client:
        began = time.monotonic()
        answer = client.post("/v1/completions", json={"model": alias, "prompt": "hi"})
        ended = time.monotonic()
    if answer.status_code != httpx.codes.OK:
        raise RuntimeError(f"a cold request was answered with {answer.status_code}: {answer.text}")
    time.sleep(_SETTLE_S)
    return Took(
        command=1000 * (node.commands[name] - began),
        outcome=1000 * (world.arrivals.at[name] - node.told[name]),
        total=1000 * (ended - began),
    )


if __name__ == "__main__":
    sys.exit(main())
