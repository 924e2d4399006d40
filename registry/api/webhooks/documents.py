from registry.api.documents import Document
from registry.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from registry.services.webhooks.endpoints import NewSecret
from registry.states import DeliveryState


def webhook_document(endpoint: WebhookEndpoint) -> Document:
    return {
        "tenant": None if endpoint.tenant is None else endpoint.tenant.name,
        "name": endpoint.name,
        "url": endpoint.url,
        "kinds": list(endpoint.kinds),
        "created_at": endpoint.created_at,
        "previous_secret_until": endpoint.previous_until,
        "failing_since": endpoint.failing_since,
        "disabled_at": endpoint.disabled_at,
        "disabled_reason": endpoint.disabled_reason,
    }


def new_webhook_document(made: NewSecret) -> Document:
    return {**webhook_document(made.endpoint), "secret": made.text}


def delivery_document(delivery: WebhookDelivery) -> Document:
    return {
        "id": delivery.pk,
        "event": delivery.event_id,
        "kind": delivery.kind,
        "state": delivery.state,
        "created_at": delivery.created_at,
        "next_at": delivery.next_at if delivery.state == DeliveryState.PENDING else None,
        "ended_at": delivery.ended_at,
        "again_of": delivery.again_of_id,
        "attempts": [_attempt(attempt) for attempt in delivery.attempts.all()],
    }


def whole_delivery_document(delivery: WebhookDelivery) -> Document:
    return {**delivery_document(delivery), "body": delivery.body}


def _attempt(attempt: WebhookAttempt) -> Document:
    return {
        "number": attempt.number,
        "at": attempt.at,
        "status": attempt.status,
        "took_ms": attempt.took_ms,
        "excerpt": attempt.excerpt,
        "error": attempt.error,
    }
