"""From the audit log to deliveries: every record that an endpoint is to be told of becomes one delivery to it.

The log is the outbox: a change and its record are one transaction, a chain has no gaps, and a record is seen only when
all before it are. So an endpoint needs to know nothing but how far it was told of each chain.
"""

import logging
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, OuterRef, Q, Subquery
from django.utils import timezone

from registry.audit import PLATFORM_CHAIN
from registry.models import AuditRecord, Tenant, WebhookCursor, WebhookDelivery, WebhookEndpoint
from registry.services.webhooks.endpoints import find_locked
from registry.states import DeliveryState
from registry.webhooks.bodies import Happening, event_body, event_id, object_key
from registry.webhooks.kinds import KINDS, tags_for

logger = logging.getLogger(__name__)

# So much waits for an endpoint at most; what else happens waits in the log.
MAX_WAITING: Final = 1000
_AT_ONCE: Final = 200
_MAX_CURSORS: Final = 500
_KEY_LENGTH: Final = 200


def collect_events() -> int:
    """Make deliveries of what has happened; returns how many. One endpoint's trouble stops no other."""
    _follow_new_tenants()
    made = 0
    for endpoint_id, chain in _behind():
        try:
            made += _collect(endpoint_id, chain)
        except Exception:
            logger.exception("webhook %s is told of the chain %s later", endpoint_id, chain)
    return made


def _follow_new_tenants() -> None:
    """The platform's endpoints are told of each tenant from its beginning on, if it began after they did."""
    for endpoint in WebhookEndpoint.objects.filter(tenant=None):
        missing = Tenant.objects.exclude(name__in=endpoint.cursors.order_by().values("chain"))
        WebhookCursor.objects.bulk_create(
            [WebhookCursor(endpoint=endpoint, chain=name, seq=0) for name in missing.values_list("name", flat=True)],
            ignore_conflicts=True,
        )


def _behind() -> list[tuple[UUID, str]]:
    """Enabled endpoints with room, each with a chain that has grown since it was told of it."""
    cursors = WebhookCursor.objects.annotate(head=_head(OuterRef("chain")))
    found = cursors.filter(head__gt=F("seq"), endpoint__disabled_at=None).order_by("pk")
    # Those without room stay behind for as long as their receiver is down, and would be the first ones every time.
    pending = WebhookDelivery.objects.filter(state=DeliveryState.PENDING.value).order_by().values("endpoint")
    full = pending.annotate(waiting=Count("pk")).filter(waiting__gte=MAX_WAITING)
    found = found.exclude(endpoint__in=full.values("endpoint"))
    return list(found.values_list("endpoint", "chain")[:_MAX_CURSORS])


@transaction.atomic
def _collect(endpoint_id: UUID, chain: str) -> int:
    endpoint = find_locked(endpoint_id, waits=False)
    if endpoint is None or endpoint.disabled_at is not None:
        return 0
    waiting = endpoint.deliveries.filter(state=DeliveryState.PENDING.value).count()
    room = min(MAX_WAITING - waiting, _AT_ONCE)
    if room <= 0:
        return 0
    # The head is read before the records: what comes in between is for the next time.
    cursor = endpoint.cursors.annotate(head=_head(OuterRef("chain"))).get(chain=chain)
    behind = Q(chain=chain, seq__gt=cursor.seq, seq__lte=cursor.head, action__in=tags_for(endpoint.kinds))
    records = list(AuditRecord.objects.filter(behind).order_by("seq")[:room])
    WebhookDelivery.objects.bulk_create([_delivery(endpoint, record) for record in records])
    cursor.seq = records[-1].seq if len(records) == room else cursor.head
    cursor.save(update_fields=["seq"])
    return len(records)


def _head(chain: OuterRef) -> Subquery:
    return Subquery(AuditRecord.objects.filter(chain=chain).order_by("-seq").values("seq")[:1])


def _delivery(endpoint: WebhookEndpoint, record: AuditRecord) -> WebhookDelivery:
    happening = Happening(
        chain=record.chain,
        seq=record.seq,
        tenant=None if record.chain == PLATFORM_CHAIN else record.chain,
        at=record.at,
        action=record.action,
        actor=record.actor,
        object=record.object,
        before=record.before,
        after=record.after,
        reason=record.reason,
        hash=record.hash,
    )
    now = timezone.now()
    return WebhookDelivery(
        endpoint=endpoint,
        event_id=event_id(chain=record.chain, seq=record.seq),
        kind=KINDS[record.action],
        object_key=object_key(happening)[:_KEY_LENGTH],
        body=event_body(happening),
        created_at=now,
        next_at=now,
    )
