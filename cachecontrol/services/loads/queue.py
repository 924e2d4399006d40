"""The rows of the load queue. What they decide is ``cachecontrol.admission``."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from cachecontrol import admission
from cachecontrol.admission import WINDOW, Claim, Shed, Waiting
from cachecontrol.drift import is_broken
from cachecontrol.models import LoadRequest, Residency
from cachecontrol.models.loads import OPEN
from cachecontrol.policy.document import STANDARD_SLA
from cachecontrol.policy.effective import PolicyInForce
from cachecontrol.quotas import wait_for_load
from cachecontrol.states import Desired, LoadState, Observed
from cachecontrol.transitions import move_load
from registry import dispatch
from registry.errors import StaleState
from registry.models import Version

logger = logging.getLogger(__name__)

_KEPT_FOR: Final = timedelta(hours=1)
_MAX_MESSAGE: Final = 500
_LONGEST_WINDOW: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """How many requests wait for a version, and how long at most."""

    waiting: int = 0
    longest: timedelta | None = None


def open_request(version: Version) -> LoadRequest | None:
    """The version's own place in the queue, or the load that was begun for it; locked."""
    return LoadRequest.objects.select_for_update(no_key=True).filter(version=version, state__in=OPEN).first()


def queued_in(pool: str) -> list[LoadRequest]:
    """What waits in the pool's queue and may still be answered in time, the oldest first."""
    found = LoadRequest.objects.filter(pool=pool, state=LoadState.QUEUED.value, deadline_at__gt=timezone.now())
    return list(found.select_related("tenant", "version").order_by("enqueued_at", "pk"))


def has_others(version: Version) -> bool:
    """Whether somebody else waits in the version's pool."""
    found = LoadRequest.objects.filter(
        pool=version.base_revision.digest, state=LoadState.QUEUED.value, deadline_at__gt=timezone.now()
    )
    return found.exclude(version=version).exists()


def enqueue(version: Version, *, policy: PolicyInForce, wait: Wait, tier: str) -> LoadRequest | Shed:
    """Let the version wait, or say why it may not. Whoever waits already waits on, for longer perhaps.

    The caller has locked the version and its pool.
    """
    tenant, now = version.adapter.tenant, timezone.now()
    most = timedelta(seconds=policy.wait_s_of(tenant.name))
    until = now + (most if wait.longest is None else min(wait.longest, most))
    known = open_request(version)
    if known is not None and known.state == LoadState.QUEUED:
        known.waiting, known.deadline_at = max(known.waiting, wait.waiting), max(known.deadline_at, until)
        known.save(update_fields=["waiting", "deadline_at"])
        return known
    queued = Counter(request.tenant_id for request in queued_in(version.base_revision.digest))
    shed = admission.admit(
        queued=queued.total(),
        limit=policy.document.loading.queue_limit,
        queued_of_tenant=queued[tenant.pk],
        share=policy.queue_places_of(tenant.name),
    )
    if shed is not None:
        return shed
    if known is not None:
        end(known, LoadState.DONE)
    return _begin(version, policy, state=LoadState.QUEUED, waiting=wait.waiting, deadline_at=until, tier=tier)


def mark_placed(version: Version, residency: Residency, *, policy: PolicyInForce, wait: Wait, tier: str) -> None:
    """The version was given to a node. The caller has locked the version and its pool."""
    now = timezone.now()
    known = open_request(version)
    if known is not None and known.state == LoadState.QUEUED:
        move_load(known, was=LoadState.QUEUED, to=LoadState.PLACED, placed_at=now, node=residency.node)
        return
    if known is not None:
        end(known, LoadState.DONE)
    facts = {"placed_at": now, "node": residency.node}
    _begin(version, policy, state=LoadState.PLACED, waiting=wait.waiting, deadline_at=now, tier=tier, **facts)


def end(request: LoadRequest, state: LoadState, message: str = "") -> None:
    """Bring a request to an end."""
    move_load(request, was=LoadState(request.state), to=state, ended_at=timezone.now(), message=message[:_MAX_MESSAGE])


def settle(pool: str) -> None:
    """End what is over: waits past their deadline, and loads whose node has brought them to an end."""
    now = timezone.now()
    for request in LoadRequest.objects.filter(pool=pool, state=LoadState.QUEUED.value, deadline_at__lte=now):
        _end_quietly(request, LoadState.EXPIRED)
    placed = list(LoadRequest.objects.filter(pool=pool, state=LoadState.PLACED.value))
    held = {
        (residency.node_id, residency.version_id): residency
        for residency in Residency.objects.filter(version__in=[request.version_id for request in placed])
    }
    for request in placed:
        state = _end_of(held.get((request.node_id or 0, request.version_id)))
        if state is not None:
            _end_quietly(request, state)
    LoadRequest.objects.filter(pool=pool, ended_at__lt=now - _KEPT_FOR).delete()


def _end_quietly(request: LoadRequest, state: LoadState) -> None:
    """Somebody else may have ended it, or placed it after all."""
    try:
        end(request, state)
    except StaleState as error:
        logger.info("a load was not ended: %s", error)


def nudge_queue(residency: Residency) -> None:
    """A load ended: let the next one of its pool begin soon after the commit, if any waits."""
    pool = residency.node.base_revision.digest
    if LoadRequest.objects.filter(pool=pool, state=LoadState.QUEUED.value).exists():
        dispatch.nudge(dispatch.SERVE_LOAD_QUEUE, pool=pool)


def claims_of(pool: str, tenants: Iterable[str], policy: PolicyInForce) -> dict[str, Claim]:
    """What each of the tenants may ask of the pool now."""
    now, begun = timezone.now(), loads_begun(pool, tenants)
    claims = {}
    for tenant in tenants:
        started = begun.get(tenant, [])
        served = sum(at > now - WINDOW for at in started)
        claims[tenant] = Claim(
            weight=policy.weight_of(tenant), served=served, left=_left(policy.loads_per_minute_of(tenant), started, now)
        )
    return claims


def pause_of(tenant: str, pool: str, policy: PolicyInForce) -> timedelta:
    """How long the tenant has to wait until its loads per minute allow another."""
    limit = policy.loads_per_minute_of(tenant)
    if limit is None:
        return timedelta()
    started = loads_begun(pool, [tenant]).get(tenant, [])
    return wait_for_load(limit=limit, started=started, now=timezone.now())


def loads_begun(pool: str, tenants: Iterable[str]) -> dict[str, list[datetime]]:
    """When loads of the tenants were begun lately."""
    rows = LoadRequest.objects.filter(
        pool=pool, tenant__name__in=list(tenants), placed_at__gt=timezone.now() - _LONGEST_WINDOW
    ).values_list("tenant__name", "placed_at")
    begun: defaultdict[str, list[datetime]] = defaultdict(list)
    for tenant, placed_at in rows:
        if placed_at is not None:
            begun[tenant].append(placed_at)
    return begun


def in_turn(queue: Iterable[LoadRequest], claims: dict[str, Claim]) -> list[LoadRequest]:
    """The requests that may begin, in their turn."""
    known = {request.pk: request for request in queue}
    waiting = [
        Waiting(
            number=request.pk,
            tenant=request.tenant.name,
            enqueued_at=request.enqueued_at,
            deadline_at=request.deadline_at,
        )
        for request in known.values()
    ]
    return [known[one.number] for one in admission.fair_order(waiting, claims, now=timezone.now())]


def _left(limit: float | None, started: list[datetime], now: datetime) -> float:
    """How many loads may begin at once, by the rule of ``quotas.wait_for_load``."""
    if limit is None:
        return float("inf")
    begun, left = list(started), 0
    while left < max(1, int(limit)) and not wait_for_load(limit=limit, started=begun, now=now):
        begun.append(now)
        left += 1
    return left


def _end_of(residency: Residency | None) -> LoadState | None:
    if residency is None or residency.desired != Desired.GPU:
        return LoadState.DONE
    if residency.observed == Observed.LOADED and residency.acted_generation == residency.generation:
        return LoadState.DONE
    return LoadState.REFUSED if is_broken(residency) else None


def _begin(
    version: Version,
    policy: PolicyInForce,
    *,
    state: LoadState,
    **facts: Any,  # noqa: ANN401  columns of the row
) -> LoadRequest:
    tenant = version.adapter.tenant
    settings = policy.document.tenants.get(tenant.name)
    return LoadRequest.objects.create(
        pool=version.base_revision.digest,
        version=version,
        tenant=tenant,
        sla=settings.sla if settings else STANDARD_SLA,
        state=state.value,
        enqueued_at=timezone.now(),
        **facts,
    )
