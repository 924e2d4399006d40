"""``python -m bench.gateway.faults``: what clients see while an engine fails, and while another tenant asks too much.

Every version is loaded on three of six engines; one of the six fails in each of the ways that there are, in the middle
of a load. Then a tenant asks for cold aliases over 500 connections while other tenants' warm streams are timed. The
last line says ok or short, and so does the exit status.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from bench.gateway.arms import Setting, lorekeeper, stub_engines, stub_process
from bench.gateway.clients import Client
from bench.gateway.load import WARM_UP_S, Plan
from bench.gateway.population import make_cold, populate
from bench.gateway.processes import OTHERS_CORE
from bench.gateway.stub import Mode
from bench.revocation.world import stage
from deploy.embedded.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.gateway.load import Target

MOST_FAILED = 0.05
MOST_SLOWER = 1.20
_SOUND_ENGINES = 5
_COPIES = 3
_TENANTS, _ALIASES = 20, 400
_CONNECTIONS = 16
_BEFORE_S = 1.0
_AFTER_S = 5.0
_RECOVERY_S = 5.0
_GAP_NS = 500_000_000
_CROWD = 500
_CROWD_TURN_S = 4.0
_ROUNDS = 3
# The gateway's own bounds, shortened where a run would wait for them.
_SILENCE = "2"
_COLD_WAIT = "2"
_MOST_WAITING_EACH = 500
# What a warm stream takes.
_STREAM_S = 0.3


@dataclass(frozen=True, slots=True)
class Effect:
    """What one fault came to. ``passed_over_s``: see ``passed_over``."""

    fault: str
    asked: int
    errors: dict[str, int]
    wrong: int
    passed_over_s: float
    slowest_s: float

    @property
    def share(self) -> float:
        """Of all requests from a second before the fault until five seconds after it, those that failed."""
        return sum(self.errors.values()) / max(1, self.asked)

    def __str__(self) -> str:
        return (
            f"{self.fault:>6}: {self.asked:>7,} requests, {self.share:.3%} failed {self.errors}, wrong {self.wrong}, "
            f"passed over after {self.passed_over_s:.2f} s, slowest answer {self.slowest_s:.2f} s"
        )


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Warm streams of others, 95th percentile of the time to the first chunk in ms, and who waited most at once."""

    alone_ms: float
    crowded_ms: float
    most_waiting: int

    @property
    def factor(self) -> float:
        """How much slower."""
        return self.crowded_ms / self.alone_ms

    def __str__(self) -> str:
        return (
            f"warm p95 first chunk {self.alone_ms:.2f} ms alone, {self.crowded_ms:.2f} ms beside {_CROWD} connections "
            f"of a tenant on cold aliases ({self.factor - 1:+.0%}); at most {self.most_waiting} waited for loads"
        )


def main() -> int:
    """Run it all; 0 if every bound held."""
    logging.disable(logging.WARNING)
    os.sched_setaffinity(0, {OTHERS_CORE})
    folders = tempfile.TemporaryDirectory(prefix="lorekeeper-bench-")
    with folders as folder, stage() as found, stub_engines(_SOUND_ENGINES) as sound, stub_process(1) as (stub, lone):
        hosted = populate([*sound, *lone], tenants=_TENANTS, aliases=_ALIASES, copies=_COPIES)
        noisy = hosted[0].tenant
        cold = make_cold([one for one in hosted if one.tenant == noisy])
        warm = [one for one in hosted if one.tenant != noisy]
        setting = Setting([*sound, *lone], warm, found.postgres, Path(folder))
        arm = lorekeeper(setting, LOREKEEPER_UPSTREAM_TIMEOUT=_SILENCE, LOREKEEPER_COLD_WAIT=_COLD_WAIT)
        try:
            neighbours = _neighbours(arm.port, arm.targets, cold)
            effects = _all_faults(arm.port, arm.targets, lone[0], stub.process.kill)
        finally:
            arm.end()
    return _report(effects, neighbours)


def _report(effects: Sequence[Effect], neighbours: Neighbours) -> int:
    wrong = sum(effect.wrong for effect in effects)
    worst = max(effects, key=lambda effect: effect.share)
    is_kept = (
        not wrong
        and worst.share <= MOST_FAILED
        and neighbours.factor <= MOST_SLOWER
        and neighbours.most_waiting <= _MOST_WAITING_EACH
    )
    sys.stdout.write(
        f"{neighbours}\nbench-gateway-faults: {'ok' if is_kept else 'short'} wrong versions {wrong} (<= 0), "
        f"worst share of failed requests {worst.share:.2%} by {worst.fault} (<= {MOST_FAILED:.0%}), "
        f"warm p95 of others x {neighbours.factor:.2f} (<= {MOST_SLOWER}), "
        f"waiting {neighbours.most_waiting} (<= {_MOST_WAITING_EACH})\n"
    )
    return 0 if is_kept else 1


def _all_faults(port: int, targets: list[Target], victim: str, kill: Callable[[], None]) -> list[Effect]:
    effects = []
    for mode in (mode for mode in Mode if mode is not Mode.SOUND):
        effects.append(_suffer(port, targets, mode, lambda mode=mode: _tell(victim, mode)))  # type: ignore[misc]
        _tell(victim, Mode.SOUND)
        time.sleep(_RECOVERY_S)
    return [*effects, _suffer(port, targets, "die", kill)]


def _tell(victim: str, mode: Mode) -> None:
    httpx.post(f"{victim}/bench/{mode}", timeout=5, trust_env=False).raise_for_status()


def _suffer(port: int, targets: list[Target], fault: str, begin: Callable[[], None]) -> Effect:
    """Let the fault begin in the middle of a load: streams where it cuts them, whole answers else."""
    client = _start(port, targets, _CONNECTIONS, _BEFORE_S + _AFTER_S, stream=fault == Mode.HALF)
    time.sleep(WARM_UP_S + _BEFORE_S)
    began = time.perf_counter_ns()
    begin()
    tally = client.result()
    effect = Effect(
        fault=str(fault),
        asked=tally.answers + len(tally.failed),
        errors=tally.errors,
        wrong=tally.wrong,
        passed_over_s=passed_over(tally.failed, began) / 1e9,
        slowest_s=max(tally.took, default=0) / 1e9,
    )
    sys.stdout.write(f"{effect}\n")
    sys.stdout.flush()
    return effect


def passed_over(failed: Sequence[int], began: int) -> int:
    """Nanoseconds from ``began`` until a request began with half a second ahead in which none began that failed."""
    quiet_from = began
    for at in sorted(failed):
        if at - quiet_from >= _GAP_NS:
            break
        quiet_from = max(quiet_from, at)
    return quiet_from - began


def _neighbours(port: int, targets: list[Target], cold: list[Target]) -> Neighbours:
    alone, crowded, most = [], [], 0
    for _round in range(_ROUNDS):
        alone += _start(port, targets, _CONNECTIONS, _CROWD_TURN_S, stream=True, over=_STREAM_S).result().first
        crowd = _start(port, cold, _CROWD, _CROWD_TURN_S + 3, stream=True, over=float(_COLD_WAIT))
        time.sleep(float(_COLD_WAIT) + 1)
        client = _start(port, targets, _CONNECTIONS, _CROWD_TURN_S, stream=True, over=_STREAM_S)
        while client.is_running:
            most = max(most, _waiting(port))
            time.sleep(0.2)
        crowded += client.result().first
        crowd.result()
    return Neighbours(_p95_ms(alone), _p95_ms(crowded), most)


def _waiting(port: int) -> int:
    waiting: int = httpx.get(f"http://{LOOPBACK}:{port}/readyz", timeout=5, trust_env=False).json()["waiting"]
    return waiting


def _p95_ms(took: Sequence[int]) -> float:
    return sorted(took)[int(len(took) * 0.95)] / 1e6


def _start(
    port: int, targets: list[Target], connections: int, seconds: float, *, stream: bool, over: float = 0.0
) -> Client:
    plan = Plan(
        host=LOOPBACK,
        port=port,
        connections=connections,
        seconds=seconds,
        stream=stream,
        targets=targets,
        begin_over_s=over,
    )
    return Client.start(plan)


if __name__ == "__main__":
    sys.exit(main())
