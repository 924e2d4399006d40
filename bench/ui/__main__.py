"""``python -m bench.ui``: server time and queries of every page that lists or shows, over years of records.

Every address below ``/ui/`` that can be asked for by GET is found in the URL configuration and asked for through the
WSGI application, as somebody who may see all of it; lists also as people narrow them and far behind their first page.
The last line says ok or short, and so does the exit status: short if a page is slower or asks more than the bounds.
"""

from __future__ import annotations

import argparse
import logging
import random
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.ui.world import Filled, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

BOUND_MS = 100.0
BOUND_QUERIES = 12
# By chance, but each time by the same.
_SEED = 7


@dataclass
class Measured:
    """What the answers of one page took: milliseconds and queries, and what was answered otherwise than by 200."""

    name: str
    milliseconds: list[float] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)

    @property
    def p95(self) -> float:
        return sorted(self.milliseconds)[int(len(self.milliseconds) * 0.95)]

    @property
    def is_good(self) -> bool:
        return self.p95 < BOUND_MS and max(self.queries) <= BOUND_QUERIES and not self.statuses - {200, 302, 404}

    def __str__(self) -> str:
        odd = f"  answered {sorted(self.statuses - {200})}" if self.statuses - {200} else ""
        best, middle = min(self.milliseconds), statistics.median(self.milliseconds)
        return (
            f"{'  ' if self.is_good else '! '}{self.name:<72} best {best:7.1f} ms  p50 {middle:7.1f} ms"
            f"  p95 {self.p95:7.1f} ms  queries {max(self.queries):3d}{odd}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.ui", description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000, help="audit records")
    parser.add_argument("--versions", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=50, help="how often each page is asked for")
    parser.add_argument("--only", default="", help="only pages with this in their name")
    parser.add_argument("--folder", type=Path, help="keep the filled database there, and use it again")
    chosen = parser.parse_args(arguments)
    with stage(records=chosen.records, versions=chosen.versions, folder=chosen.folder) as filled:
        measured = _measure(filled, times=chosen.times, records=chosen.records, only=chosen.only)
    short = [each.name for each in measured if not each.is_good]
    worst = max(measured, key=lambda each: each.p95)
    verdict = "short" if short else "ok"
    _say(
        f"bench-ui: {verdict} {len(measured)} pages, the slowest {worst.p95:.0f} ms at p95 (bound {BOUND_MS:.0f} ms),"
        f" at most {max(max(each.queries) for each in measured)} queries (bound {BOUND_QUERIES})"
        + (f"; beyond: {', '.join(short)}" if short else "")
    )
    return 1 if short else 0


def _measure(filled: Filled, *, times: int, records: int, only: str) -> list[Measured]:
    from bench.ui.asking import Browser  # noqa: PLC0415  Django was set up meanwhile
    from bench.ui.questions import questions  # noqa: PLC0415

    # What is not there in this world is said once, in the line of its page.
    logging.disable(logging.WARNING)
    browser = Browser(filled.email)
    found = []
    for name, addresses in questions(filled, records=records).items():
        if only not in name:
            continue
        pick = random.Random(_SEED)  # noqa: S311  which page is asked for is no secret
        measured = Measured(name)
        # The first answer of a page compiles its template.
        browser.get(addresses[0])
        for _number in range(times):
            began = time.perf_counter()
            status, queries = browser.get(pick.choice(addresses))
            measured.milliseconds.append((time.perf_counter() - began) * 1000)
            measured.queries.append(queries)
            measured.statuses.add(status)
        _say(str(measured))
        found.append(measured)
    return found


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
