"""What is due to be sent, and what came of it. An attempt is given out in one short move and settled in another."""

import random
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, Min, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import dispatch
from registry.actors import Actor, system_actor
from registry.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from registry.services.webhooks import events
from registry.services.webhooks.endpoints import find_locked, lock_webhook, require_enabled, switch_off
from registry.states import DeliveryState
from registry.transitions import move_delivery
from registry.webhooks.bodies import ping_body
from registry.webhooks.kinds import PING
from registry.webhooks.retries import next_try
from registry.webhooks.sealing import SecretUnreadable, open_sealed
from registry.webhooks.sending import Message, Outcome

# An attempt that has not been settled in so long was made by a process that is gone: it is made again.
CLAIM: Final = timedelta(seconds=60)
# Attempts at once to one endpoint; while it fails, one.
AT_ONCE: Final = 4
# An endpoint that nothing has got through to for so long is disabled.
DISABLED_AFTER: Final = timedelta(days=5)
_MAX_SWEPT: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One attempt to make now: the ``number``-th of a delivery."""

    delivery_id: int
    endpoint_id: UUID
    number: int
    message: Message = field(repr=False)


def claim_deliveries(*, most: int, busy: Mapping[UUID, int]) -> list[Claim]:
    """Give out what is due, the longest overdue endpoint first; ``busy`` counts what is being sent to each now.

    Of what is about one object a delivery is due only when all before it have come to their end.
    """
    claims: list[Claim] = []
    for endpoint in _due_endpoints():
        room = min(_room(endpoint, busy), most - len(claims))
        if room > 0:
            claims += _claim(endpoint, room)
    return claims


@transaction.atomic
def settle_attempt(*, claim: Claim, outcome: Outcome) -> None:
    """Keep what came of an attempt, and decide whether another one follows. Removed meanwhile: nothing."""
    endpoint = find_locked(claim.endpoint_id)
    locked = WebhookDelivery.objects.select_for_update(of=("self",), no_key=True)
    delivery = locked.filter(pk=claim.delivery_id).first()
    if endpoint is None or delivery is None:
        return
    now = timezone.now()
    WebhookAttempt.objects.create(
        delivery=delivery,
        number=claim.number,
        at=now,
        status=outcome.status,
        took_ms=outcome.took_ms,
        excerpt=outcome.excerpt,
        error=outcome.error,
    )
    if delivery.state != DeliveryState.PENDING:
        return
    if outcome.is_delivered:
        move_delivery(delivery, was=DeliveryState.PENDING, to=DeliveryState.DELIVERED, ended_at=now)
        _note_failing(endpoint, None)
        return
    _try_again(delivery, outcome, now)
    _note_failing(endpoint, endpoint.failing_since or now)
    _give_up_if_hopeless(endpoint, outcome, now)


@transaction.atomic
def ping_webhook(*, actor: Actor, endpoint: WebhookEndpoint) -> WebhookDelivery:
    """Send a test event soon. Raises ``WrongState`` when the endpoint is disabled."""
    locked = lock_webhook(actor, endpoint)
    require_enabled(locked)
    now, name = timezone.now(), f"{PING}_{uuid.uuid4().hex}"
    owner = None if locked.tenant is None else locked.tenant.name
    body = ping_body(event_id=name, tenant=owner, endpoint=locked.name, at=now)
    made = WebhookDelivery.objects.create(
        endpoint=locked, event_id=name, kind=PING, body=body, created_at=now, next_at=now
    )
    dispatch.nudge(dispatch.DELIVER_WEBHOOKS)
    return made


@transaction.atomic
def redeliver(*, actor: Actor, delivery: WebhookDelivery) -> WebhookDelivery:
    """Send an event again soon, with its old id, whatever came of it; it waits for no other of its object.

    Raises ``WrongState`` when the endpoint is disabled.
    """
    endpoint = lock_webhook(actor, delivery.endpoint)
    require_enabled(endpoint)
    now = timezone.now()
    again = WebhookDelivery.objects.create(
        endpoint=endpoint,
        event_id=delivery.event_id,
        kind=delivery.kind,
        body=delivery.body,
        created_at=now,
        next_at=now,
        again_of=delivery,
    )
    events.delivery_repeated(actor=actor, delivery=again)
    dispatch.nudge(dispatch.DELIVER_WEBHOOKS)
    return again


def forget_old_deliveries() -> int:
    """Delete what has come to its end and was kept for as long as the settings say; returns how many."""
    before = timezone.now() - timedelta(days=settings.WEBHOOK_LOG_DAYS)
    old = WebhookDelivery.objects.filter(ended_at__lt=before).order_by("ended_at")
    keys = list(old.values_list("pk", flat=True)[:_MAX_SWEPT])
    WebhookDelivery.objects.filter(pk__in=keys).delete()
    return len(keys)


def _due() -> QuerySet[WebhookDelivery]:
    pending = WebhookDelivery.objects.filter(state=DeliveryState.PENDING.value)
    before = pending.filter(endpoint=OuterRef("endpoint"), object_key=OuterRef("object_key"), pk__lt=OuterRef("pk"))
    ready = Q(object_key="") | ~Exists(before)
    return pending.filter(ready, next_at__lte=timezone.now(), endpoint__disabled_at=None)


def _due_endpoints() -> list[WebhookEndpoint]:
    waiting = _due().order_by().values("endpoint").annotate(first=Min("next_at")).order_by("first")
    keys = [row["endpoint"] for row in waiting]
    found = WebhookEndpoint.objects.in_bulk(keys)
    return [found[pk] for pk in keys if pk in found]


def _room(endpoint: WebhookEndpoint, busy: Mapping[UUID, int]) -> int:
    most = AT_ONCE if endpoint.failing_since is None else 1
    return most - busy.get(endpoint.pk, 0)


@transaction.atomic
def _claim(endpoint: WebhookEndpoint, most: int) -> list[Claim]:
    try:
        keys = _keys_of(endpoint)
    except SecretUnreadable:
        locked = find_locked(endpoint.pk)
        if locked is not None:
            _give_up(locked, _("The server can't read its secret any more. Rotate the secret, then enable it."))
        return []
    due = _due().filter(endpoint=endpoint).select_for_update(of=("self",), no_key=True, skip_locked=True)
    rows = list(due.order_by("pk")[:most])
    changed = {"tries": F("tries") + 1, "next_at": timezone.now() + CLAIM}
    WebhookDelivery.objects.filter(pk__in=[row.pk for row in rows]).update(**changed)
    return [
        Claim(
            delivery_id=row.pk,
            endpoint_id=endpoint.pk,
            number=row.tries + 1,
            message=Message(url=endpoint.url, event_id=row.event_id, body=row.body.encode(), keys=keys),
        )
        for row in rows
    ]


def _keys_of(endpoint: WebhookEndpoint) -> tuple[bytes, ...]:
    """What signs, the newest first. Raises ``SecretUnreadable`` for that one alone: the one before may be lost."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    found = [open_sealed(bytes(endpoint.secret), keys=keys, endpoint=endpoint.pk)]
    if endpoint.previous_secret is not None and endpoint.previous_until and endpoint.previous_until > timezone.now():
        with suppress(SecretUnreadable):
            found.append(open_sealed(bytes(endpoint.previous_secret), keys=keys, endpoint=endpoint.pk))
    return tuple(found)


def _try_again(delivery: WebhookDelivery, outcome: Outcome, now: datetime) -> None:
    """After a failure: the next attempt, or the end of the delivery."""
    at = next_try(
        tries=delivery.tries,
        since=delivery.created_at,
        now=now,
        draw=random.random(),  # noqa: S311  it spreads load, and keeps no secret
        asked=outcome.asked,
    )
    if at is None:
        move_delivery(delivery, was=DeliveryState.PENDING, to=DeliveryState.PARKED, ended_at=now)
    else:
        delivery.next_at = at
        delivery.save(update_fields=["next_at"])


def _note_failing(endpoint: WebhookEndpoint, since: datetime | None) -> None:
    if endpoint.failing_since != since:
        endpoint.failing_since = since
        endpoint.save(update_fields=["failing_since"])


def _give_up_if_hopeless(endpoint: WebhookEndpoint, outcome: Outcome, now: datetime) -> None:
    if outcome.status == HTTPStatus.GONE:
        _give_up(endpoint, _("The receiver answered 410: it is gone."))
    elif endpoint.failing_since is not None and endpoint.failing_since <= now - DISABLED_AFTER:
        days = {"days": DISABLED_AFTER.days}
        _give_up(endpoint, _("No delivery has got through for %(days)d days.") % days)


def _give_up(locked: WebhookEndpoint, reason: str) -> None:
    if locked.disabled_at is None:
        switch_off(actor=system_actor("webhooks"), endpoint=locked, reason=reason)
