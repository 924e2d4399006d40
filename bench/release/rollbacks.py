"""``python -m bench.release.rollbacks``: from the click on a rollback to the last gateway on the old version.

Several gateways are asked all the time; an alias of theirs is rolled back through the API while a release gives its
candidate to everybody who asks, or after its promotion. What counts is what those who ask get in their hands: the time
from sending the click to each gateway's first answer by the old version after which no request got the candidate any
more, of the slowest gateway. A stray is a request that began after the API had answered and got the candidate still.
The last line says ok or short, and so does the exit status.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import httpx
import uvloop

from bench.release.fleet import TENANT, Answer, Button, Crowd, Fleet, fleet, manager
from bench.revocation.world import stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from releases.models import Release

BOUND_MS = 100.0
GATEWAYS = 4
ROUNDS = 30
_EACH = 4
_PAUSE_S = 0.025
_SETTLE_S = 0.25
_GIVE_UP_S = 10.0
# The whole tenant has the candidate, so that each of its requests shows on which version a gateway is.
_PLAN = f"""\
evaluate: {{is_needed: false}}
shadow: null
canary: [{{tenants: [{TENANT}], percent: 50}}]
approvals: 0
"""


class Kind(StrEnum):
    """What is rolled back."""

    CANARY = "canary"
    PROMOTED = "promoted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Click:
    """One rollback, in milliseconds from the click: until the API answered, and until every gateway was back."""

    api_ms: float
    everywhere_ms: float
    strays: int
    failed: int


@dataclass(slots=True)
class Clicks:
    """All rollbacks of each kind, and how many requests came in a second meanwhile."""

    clicks: dict[Kind, list[Click]] = field(default_factory=lambda: {kind: [] for kind in Kind})
    rate: float = 0.0

    @property
    def p95_ms(self) -> float:
        """Of the rollbacks of both kinds."""
        return percentile([click.everywhere_ms for clicks in self.clicks.values() for click in clicks], 0.95)

    @property
    def failed(self) -> int:
        return sum(click.failed for clicks in self.clicks.values() for click in clicks)

    def lines(self) -> list[str]:
        """A sentence for each kind."""
        return [_line(kind, clicks, self.rate) for kind, clicks in self.clicks.items()]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them doesn't exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def click_of(answers: Mapping[str, Sequence[Answer]], *, clicked: float, answered: float) -> Click:
    """What came of one, by the answers of each gateway; those that were there before the click tell nothing."""
    counted = {url: [answer for answer in each if answer.ended > clicked] for url, each in answers.items()}
    return Click(
        api_ms=1000 * (answered - clicked),
        everywhere_ms=1000 * max(back_at(each) - clicked for each in counted.values()),
        strays=sum(answer.is_bad is True and answer.began > answered for each in counted.values() for answer in each),
        failed=sum(answer.is_bad is None for each in counted.values() for answer in each),
    )


def back_at(answers: Sequence[Answer]) -> float:
    """When a gateway's first answer by the good version was there, of requests that began after the last bad one's."""
    last = max((answer.began for answer in answers if answer.is_bad), default=-math.inf)
    return min(answer.ended for answer in answers if answer.is_bad is False and answer.began > last)


def measure(*, gateways: int = GATEWAYS, rounds: int = ROUNDS) -> Clicks:
    """Roll back ``rounds`` releases of each kind, by turns, with services of its own. Sets up Django."""
    with stage() as found, fleet(found, gateways=gateways, buttons=rounds * len(Kind)) as made:
        clicks: Clicks = uvloop.run(_measure(made))
    return clicks


async def _measure(made: Fleet) -> Clicks:
    found, crowd = Clicks(), Crowd(made, _EACH, _PAUSE_S)
    crowd.look_at(made.buttons[0])
    await crowd.start()
    began, asked = time.monotonic(), 0
    headers = {"authorization": f"Bearer {made.person}"}
    async with httpx.AsyncClient(base_url=made.web, headers=headers, trust_env=False, timeout=_GIVE_UP_S) as web:
        for number, button in enumerate(made.buttons):
            kind = list(Kind)[number % len(Kind)]
            found.clicks[kind].append(await _one(crowd, button, kind, web))
            asked += sum(map(len, crowd.answers.values()))
    found.rate = asked / (time.monotonic() - began)
    crowd.is_over = True
    return found


async def _one(crowd: Crowd, button: Button, kind: Kind, web: httpx.AsyncClient) -> Click:
    crowd.look_at(button)
    await asyncio.to_thread(_EXPOSE[kind], button)
    await _until(crowd, is_bad=True)
    clicked = time.monotonic()
    said = await web.post(f"/api/v1/tenants/{TENANT}/aliases/{button.alias}/rollback", json={"reason": "bench"})
    answered = time.monotonic()
    said.raise_for_status()
    await _until(crowd, is_bad=False)
    await asyncio.sleep(_SETTLE_S)
    return click_of(crowd.answers, clicked=clicked, answered=answered)


async def _until(crowd: Crowd, *, is_bad: bool) -> None:
    """Wait until the newest answers of each gateway, one for each connection, are all such."""
    async with asyncio.timeout(_GIVE_UP_S):
        while not all(
            len(each) >= _EACH and all(answer.is_bad is is_bad for answer in each[-_EACH:])
            for each in crowd.answers.values()
        ):
            crowd.heard.clear()
            await crowd.heard.wait()


def _begin(button: Button) -> Release:
    """A release of the bad version; nothing serves it yet."""
    from registry.models import Version  # noqa: PLC0415  Django was set up meanwhile
    from releases.models import Alias  # noqa: PLC0415
    from releases.services.releases.make import make_release  # noqa: PLC0415
    from releases.services.releases.verbs import start_release  # noqa: PLC0415

    actor = manager()
    made = make_release(
        actor=actor,
        alias=Alias.objects.get(name=button.alias, tenant__name=TENANT),
        candidate=Version.objects.get(pk=button.bad_id),
        plan_text=_PLAN,
    )
    return start_release(actor=actor, release=made)


def _to_canary(button: Button) -> None:
    from releases.models import AliasSplit  # noqa: PLC0415  as above
    from releases.services.steering import steer_release  # noqa: PLC0415

    release, deadline = _begin(button), time.monotonic() + _GIVE_UP_S
    while not AliasSplit.objects.filter(alias=release.alias_id).exists():
        if steer_release(release_id=release.pk):
            continue
        if time.monotonic() > deadline:
            release.refresh_from_db()
            raise TimeoutError(f"the release of {button.alias} gives nobody its candidate: {release.sentence}")
        time.sleep(_PAUSE_S)


def _promote(button: Button) -> None:
    from releases.services.releases.verbs import promote_release  # noqa: PLC0415  as above

    promote_release(actor=manager(), release=_begin(button))


_EXPOSE: Mapping[Kind, Callable[[Button], None]] = {Kind.CANARY: _to_canary, Kind.PROMOTED: _promote}


def _line(kind: Kind, clicks: Sequence[Click], rate: float) -> str:
    everywhere = [click.everywhere_ms for click in clicks]
    return (
        f"{len(clicks)} rollbacks, {kind}, at {rate:.0f} requests a second: from the click to every gateway on the old "
        f"version p50 {percentile(everywhere, 0.5):.0f} ms, p95 {percentile(everywhere, 0.95):.0f} ms, worst "
        f"{max(everywhere):.0f} ms; the API answered in p50 {percentile([click.api_ms for click in clicks], 0.5):.0f} "
        f"ms; strays {sum(click.strays for click in clicks)}, failed {sum(click.failed for click in clicks)}"
    )


def main() -> int:
    """Print what was measured; 0 if it's within the bound and no request failed."""
    logging.getLogger("httpx").setLevel(logging.WARNING)
    found = measure()
    sys.stdout.write("".join(f"{line}\n" for line in found.lines()))
    is_ok = found.p95_ms <= BOUND_MS and not found.failed
    sys.stdout.write(
        f"bench-rollbacks: {'ok' if is_ok else 'short'} p95 {found.p95_ms:.0f} ms with {GATEWAYS} gateways, bound "
        f"{BOUND_MS:.0f} ms, failed {found.failed}\n"
    )
    return 0 if is_ok else 1


if __name__ == "__main__":
    sys.exit(main())
