"""Who may wait for a load, and whose turn it is: pure decisions over the load queue of one pool.

Turns are weighted fair over tenants: a tenant is charged 1 / weight for each load it was given within the last minute,
and the tenant with the smallest charge is next. So one that floods the queue waits for its own loads, not others for
them; and one that was idle has no more in hand than a minute's worth. Within a tenant the oldest goes first.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import Final

WINDOW: Final = timedelta(minutes=1)
_SHORTEST_WAIT_S: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A load that waits. ``number`` tells it apart."""

    number: int
    tenant: str
    enqueued_at: datetime
    deadline_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a tenant may ask of the pool.

    ``weight`` is that of its SLA class, ``served`` how many loads it was given within ``WINDOW``, ``left`` how many
    more its quota allows now.
    """

    weight: float = 1.0
    served: int = 0
    left: float = math.inf


class Shed(StrEnum):
    """Why a load may not even wait."""

    QUEUE_FULL = "queue_full"
    TENANT_SHARE = "tenant_share"


def admit(*, queued: int, limit: int, queued_of_tenant: int, share: int) -> Shed | None:
    """Whether one more may wait: the queue has ``limit`` places, the tenant ``share`` of them."""
    if queued >= limit:
        return Shed.QUEUE_FULL
    return Shed.TENANT_SHARE if queued_of_tenant >= share else None


def is_over(waiting: Waiting, now: datetime) -> bool:
    """Whether nobody waits for it any more."""
    return waiting.deadline_at <= now


def fair_order(queue: Iterable[Waiting], claims: Mapping[str, Claim], *, now: datetime) -> list[Waiting]:
    """The loads that may begin, in their turn. Left out: who is over its deadline, and who was given its loads."""
    lines = _lines(waiting for waiting in queue if not is_over(waiting, now))
    left = {tenant: _claim(claims, tenant).left for tenant in lines}
    turns = [_turn(tenant, lines[tenant], _claim(claims, tenant), taken=0) for tenant in lines if left[tenant] >= 1]
    heapify(turns)
    order: list[Waiting] = []
    taken: defaultdict[str, int] = defaultdict(int)
    while turns:
        _charge, _since, tenant = heappop(turns)
        order.append(lines[tenant].popleft())
        taken[tenant] += 1
        if lines[tenant] and taken[tenant] < left[tenant]:
            heappush(turns, _turn(tenant, lines[tenant], _claim(claims, tenant), taken=taken[tenant]))
    return order


def expected_wait_s(*, ahead: int, at_once: int, load_s: float) -> int:
    """Whole seconds until a load begins that ``ahead`` others precede while ``at_once`` run, each ``load_s`` long."""
    return max(_SHORTEST_WAIT_S, math.ceil((ahead + 1) / max(at_once, 1) * load_s))


_Turn = tuple[float, datetime, str]


def _turn(tenant: str, line: deque[Waiting], claim: Claim, *, taken: int) -> _Turn:
    return (claim.served + taken) / claim.weight, line[0].enqueued_at, tenant


def _lines(queue: Iterable[Waiting]) -> dict[str, deque[Waiting]]:
    lines: defaultdict[str, deque[Waiting]] = defaultdict(deque)
    for waiting in sorted(queue, key=lambda waiting: (waiting.enqueued_at, waiting.number)):
        lines[waiting.tenant].append(waiting)
    return dict(lines)


def _claim(claims: Mapping[str, Claim], tenant: str) -> Claim:
    return claims.get(tenant, Claim())
