"""``python -m bench.judge``: how often the judge is wrong and how soon it is right, over simulated releases.

Each release has the default canary steps, with a look every 20 s; a step ends with the first fail, or with the first
pass after its least time, or is held after an hour. Beside it, on the same requests, what one would write first: a
z-test of the two error rates, or Mann-Whitney on the times, at each look until the least time, each at p < 0.05. The
last line says ok or short, and so does the exit status.
"""

from __future__ import annotations

import sys
import time

from bench.judge.simulate import SETTINGS, Tally, run
from bench.judge.world import SLICE_S, STEPS, Case

WRONG, DETECTED = SETTINGS.false_alarm, 0.95
RELEASES, FEWER, FEW = 10_000, 2_000, 500
ERRORS, TTFT, QUALITY = ("errors",), ("ttft",), ("quality",)
EVERY = ("errors", "ttft", "total", "cost", "quality")
_SEED = 20

EQUAL = (
    (Case(name="equal, all metrics"), EVERY, RELEASES),
    (Case(name="equal, errors 1 %"), ERRORS, RELEASES),
    (Case(name="equal, errors 1 %", requests_per_s=2), ERRORS, RELEASES),
    (Case(name="equal, errors 1 %", requests_per_s=200), ERRORS, RELEASES),
    (Case(name="equal, errors 0.1 %", error_rate=0.001), ERRORS, RELEASES),
    (Case(name="equal, errors 20 %", error_rate=0.2), ERRORS, RELEASES),
    (Case(name="equal, a node stumbles (errors x10 for 1 min, both sides)", pattern="trouble"), ERRORS, RELEASES),
    (Case(name="equal, clients retry (40 errors at once, one side)", pattern="retries"), ERRORS, RELEASES),
    (Case(name="equal, TTFT under load that goes up and down", pattern="load"), TTFT, FEWER),
    (Case(name="equal, TTFT with a tail without a mean", spread=1.0, heavy=0.1), TTFT, FEWER),
    (Case(name="equal, quality marks for 2 %"), QUALITY, RELEASES),
)
DOUBLED = (Case(name="errors 1 % -> 2 %", factor=2), ERRORS, RELEASES)
WORSE = (
    DOUBLED,
    *(
        (Case(name=f"errors 1 % -> {factor:g} %", factor=factor, requests_per_s=traffic), ERRORS, FEWER)
        for traffic in (2, 20, 200)
        for factor in (1.5, 2, 5, 100)
        if (traffic, factor) != (20, 2)
    ),
    (Case(name="errors 0.1 % -> 1 %", error_rate=0.001, factor=10), ERRORS, FEWER),
    (Case(name="errors 1 % -> 2 %, a node stumbles", factor=2, pattern="trouble"), ERRORS, FEWER),
    (Case(name="errors 1 % -> 2 %, clients retry", factor=2, pattern="retries"), ERRORS, FEWER),
    *(
        (Case(name=f"TTFT x{factor:g}", factor=factor, requests_per_s=traffic), TTFT, FEW)
        for traffic in (2, 20)
        for factor in (1.1, 1.3, 2)
    ),
    (Case(name="TTFT x1.3 under load that goes up and down", factor=1.3, pattern="load"), TTFT, FEW),
    (Case(name="TTFT x1.3 with a tail without a mean", factor=1.3, spread=1.0, heavy=0.1), TTFT, FEW),
    (Case(name="bad marks 20 % -> 40 %, of 2 %", factor=2), QUALITY, FEWER),
)


def main() -> int:
    began = time.process_time()
    steps = " -> ".join(f"{step.share:.0%} for {step.at_least_min} to {step.at_most_min} min" for step in STEPS)
    say(f"steps {steps}, a look every {SLICE_S} s; settings: {SETTINGS.tests} tests in {SETTINGS.steps} steps\n")
    say(_line("", "req/s", "releases", "rolled back", "promoted", "held", "min", "rolled back by"))
    say(_line("", "", "", "", "", "", "(median)", "a test per look"))
    equal = [_said(*row) for row in EQUAL]
    say("")
    doubled, *_others = [_said(*row) for row in WORSE]
    wrong, naive = max(tally.rolled_back for tally in equal), equal[0].naive
    is_ok = wrong <= WRONG and doubled.rolled_back >= DETECTED
    say(
        f"\nbench-judge: {'ok' if is_ok else 'short'} equal versions rolled back: {equal[0].rolled_back:.2%} of "
        f"{RELEASES} releases on all metrics, {wrong:.2%} in the worst row (bound {WRONG:.0%}; a test per look "
        f"{naive:.0%}); errors 1 % -> 2 % at 20 req/s rolled back {doubled.rolled_back:.1%} (bound {DETECTED:.0%}), "
        f"promoted {doubled.promoted:.2%}; {time.process_time() - began:.0f} s"
    )
    return 0 if is_ok else 1


def _said(case: Case, metrics: tuple[str, ...], releases: int) -> Tally:
    tally = run(case, metrics, releases, _SEED)
    shares = (f"{share:.2%}" for share in (tally.rolled_back, tally.promoted, tally.held))
    minutes = "-" if tally.minutes is None else f"{tally.minutes:.1f}"
    say(_line(case.name, f"{case.requests_per_s:g}", str(releases), *shares, minutes, f"{tally.naive:.1%}"))
    return tally


def _line(name: str, *cells: str) -> str:
    return f"{name:<60}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


_WIDTHS = (7, 10, 13, 11, 10, 10, 17)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
