"""One function per audit event of webhooks. Tags read ``subject:object:action``.

Each is called by a service inside the transaction that makes the change. No record holds a secret, and receivers are
not told of these: an endpoint's own affairs are no event.
"""

from typing import Any

from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN, append_record
from registry.models import WebhookDelivery, WebhookEndpoint


def endpoint_created(*, actor: Actor, endpoint: WebhookEndpoint) -> int:
    """The number of the record: what comes behind it in its chain is what the endpoint is told of."""
    return _append(actor, endpoint, "create", after=endpoint_facts(endpoint))


def endpoint_changed(*, actor: Actor, endpoint: WebhookEndpoint, before: dict[str, Any]) -> None:
    _append(actor, endpoint, "change", before=before, after=endpoint_facts(endpoint))


def endpoint_removed(*, actor: Actor, endpoint: WebhookEndpoint) -> None:
    _append(actor, endpoint, "remove", before=endpoint_facts(endpoint))


def secret_rotated(*, actor: Actor, endpoint: WebhookEndpoint) -> None:
    until = endpoint.previous_until
    _append(actor, endpoint, "rotate_secret", after={"previous_until": until.isoformat() if until else None})


def endpoint_disabled(*, actor: Actor, endpoint: WebhookEndpoint) -> None:
    """By somebody, or by the platform because nothing has got through for long."""
    since = endpoint.failing_since
    _append(
        actor,
        endpoint,
        "disable",
        before={"enabled": True, "failing_since": since.isoformat() if since else None},
        after={"enabled": False},
        reason=endpoint.disabled_reason,
    )


def endpoint_enabled(*, actor: Actor, endpoint: WebhookEndpoint, skips_missed: bool) -> None:
    _append(actor, endpoint, "enable", before={"enabled": False}, after={"enabled": True, "skips_missed": skips_missed})


def delivery_repeated(*, actor: Actor, delivery: WebhookDelivery) -> None:
    """Somebody has an event sent again."""
    _append(actor, delivery.endpoint, "redeliver", after={"event": delivery.event_id, "kind": delivery.kind})


def endpoint_facts(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """What the log says of a receiver."""
    return {"url": endpoint.url, "kinds": list(endpoint.kinds)}


def _append(
    actor: Actor,
    endpoint: WebhookEndpoint,
    verb: str,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    reason: str = "",
) -> int:
    tenant = endpoint.tenant
    return append_record(
        actor=actor,
        chain=PLATFORM_CHAIN if tenant is None else tenant.name,
        action=f"{'platform' if tenant is None else 'tenant'}:webhook:{verb}",
        object_={"kind": "webhook", "id": str(endpoint.pk), "name": str(endpoint)},
        before=before,
        after=after,
        reason=reason,
    )
