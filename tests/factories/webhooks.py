"""Receivers of events, and what is sent to them. They write no audit records."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from registry.models import Tenant, WebhookDelivery, WebhookEndpoint
from registry.webhooks.sealing import seal
from tests.factories.registry import next_name

SECRET = b"0123456789abcdef0123456789abcdef"


def make_webhook(
    *,
    tenant: Tenant | None,
    name: str | None = None,
    url: str = "https://receiver.example/events",
    kinds: Iterable[str] = ("version.*",),
    chains: Iterable[str] | None = None,
    **facts: Any,
) -> WebhookEndpoint:
    """An endpoint that has seen nothing of its tenant's chain, or of ``chains``."""
    endpoint = WebhookEndpoint(tenant=tenant, name=name or next_name("hook"), url=url, kinds=sorted(kinds), **facts)
    endpoint.secret = seal(SECRET, key=settings.SECRET_KEY, endpoint=endpoint.pk)
    endpoint.save(force_insert=True)
    for chain in chains if chains is not None else ["platform" if tenant is None else tenant.name]:
        endpoint.cursors.create(chain=chain, seq=0)
    return endpoint


def make_delivery(*, endpoint: WebhookEndpoint, **facts: Any) -> WebhookDelivery:
    """A delivery that is due."""
    now = timezone.now()
    made = {
        "event_id": f"{endpoint.name}_{next_name('e').partition('-')[2]}",
        "kind": "version.approved",
        "object_key": f"version:{next_name('v')}",
        "body": '{"type":"version.approved"}',
        "created_at": now,
        "next_at": now - timedelta(seconds=1),
    }
    return WebhookDelivery.objects.create(endpoint=endpoint, **{**made, **facts})
