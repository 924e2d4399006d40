"""``python -m bench.revocation``: from the commit of a revocation to the first refusal in a client's hands.

A client asks without a pause, so what is measured is at most one request too much. Also shown: the last moment after
the commit at which a request began that the version still answered. The last line says ok or short, and so does the
exit status.
"""

from __future__ import annotations

import logging
import statistics
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from bench.revocation.world import Stage, fill, gateway, make_targets, stage

if TYPE_CHECKING:
    from registry.models import Version

BOUND_MS = 100.0
ROUNDS = 30
SIZES = (0, 5000)
SETTLE_S = 0.2
_GIVE_UP_S = 5.0


@dataclass(slots=True)
class Asker(threading.Thread):
    """Asks for one alias again and again; keeps when each request began and ended, and whether the version answered."""

    url: str
    key: str
    alias: str
    answers: list[tuple[float, float, bool]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super(Asker, self).__init__(daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        headers = {"authorization": f"Bearer {self.key}"}
        with httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=_GIVE_UP_S) as client:
            while not self.stopped.is_set():
                began = time.monotonic()
                answer = client.post("/v1/completions", json={"model": self.alias, "prompt": "hi"})
                self.answers.append((began, time.monotonic(), answer.status_code == httpx.codes.OK))

    def wait_for(self, *, served: bool) -> None:
        deadline = time.monotonic() + _GIVE_UP_S
        while not self.answers or self.answers[-1][2] is not served:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.alias} was not {'served' if served else 'refused'} in time")
            time.sleep(0.001)


def main() -> int:
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with stage() as found:
        worst = max(_measure(found, size) for size in SIZES)
    verdict = "ok" if worst <= BOUND_MS else "short"
    sys.stdout.write(f"bench-revocation: {verdict} worst {worst:.1f} ms, bound {BOUND_MS:.0f} ms\n")
    return 0 if verdict == "ok" else 1


def _measure(found: Stage, size: int) -> float:
    """The worst of all rounds beside ``size`` other versions, in milliseconds."""
    fill(size)
    key, targets = make_targets(found.engine_url, ROUNDS)
    with gateway(found.postgres) as url:
        took = [_revoke_one(url, key, alias, version) for alias, version in targets]
    refused = sorted(first for first, _last in took)
    sys.stdout.write(
        f"{size:>6} other versions, {ROUNDS} revocations: commit to first refusal median "
        f"{statistics.median(refused):.1f} ms, p90 {refused[int(ROUNDS * 0.9)]:.1f} ms, worst {refused[-1]:.1f} ms; "
        f"last request answered began {max(last for _first, last in took):.1f} ms after the commit\n"
    )
    return refused[-1]


def _revoke_one(url: str, key: str, alias: str, version: Version) -> tuple[float, float]:
    """Milliseconds from the commit until the first refusal was there, and until the last answered request began."""
    from django.db import transaction  # noqa: PLC0415  Django was set up meanwhile

    from registry.actors import system_actor  # noqa: PLC0415
    from registry.services.withdrawals import revoke_version  # noqa: PLC0415

    asker = Asker(url, key, alias)
    asker.start()
    asker.wait_for(served=True)
    committed: list[float] = []
    with transaction.atomic():
        # The first thing that happens after the commit, before the nudges.
        transaction.on_commit(lambda: committed.append(time.monotonic()))
        revoke_version(actor=system_actor("bench"), version=version, reason="bench")
    asker.wait_for(served=False)
    time.sleep(SETTLE_S)
    asker.stopped.set()
    asker.join()
    first = min(ended for began, ended, served in asker.answers if not served)
    last = max(began for began, ended, served in asker.answers if served)
    return 1000 * max(first - committed[0], 0.0), 1000 * max(last - committed[0], 0.0)


if __name__ == "__main__":
    sys.exit(main())
