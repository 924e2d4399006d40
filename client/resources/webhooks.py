"""Webhooks: who is told of what happens, and what was sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from client.decoding import decode
from client.pages import iterate, read_all
from client.resources.audit import PLATFORM
from client.transport import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from client.transport import Transport


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver of events; `secret` checks signatures and is there only in the answers that made it.

    `failing_since` is the first failure that no success has followed; `tenant` is null for the platform's own.
    """

    name: str
    url: str
    kinds: tuple[str, ...] = ()
    tenant: str | None = None
    created_at: str = ""
    previous_secret_until: str | None = None
    failing_since: str | None = None
    disabled_at: str | None = None
    disabled_reason: str = ""
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class WebhookAttempt:
    """What came of one attempt; without a `status` there was no answer, and `error` says why."""

    number: int
    at: str = ""
    status: int | None = None
    took_ms: int = 0
    excerpt: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """One event on its way to a receiver: pending, delivered, or parked.

    Parked: it has not got through within a day, or what its webhook missed was skipped.
    """

    id: int
    event: str
    kind: str
    state: str
    created_at: str = ""
    next_at: str | None = None
    ended_at: str | None = None
    again_of: int | None = None
    attempts: tuple[WebhookAttempt, ...] = ()
    body: str | None = None


class Webhooks:
    """Calls below `/tenants/{tenant}/webhooks` and `/webhooks` (platform admin).

    `tenant` may be `platform`, a name that no tenant has: then it is the platform's own, told of every tenant.
    """

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def create(self, tenant: str, name: str, *, url: str, kinds: Sequence[str]) -> Webhook:
        """Tell a receiver of what happens from now on; its secret is in the answer this once."""
        body = {"name": name, "url": url, "kinds": list(kinds)}
        return decode(Webhook, self._transport.call("POST", _place(tenant), body=body))

    def all(self, tenant: str) -> tuple[Webhook, ...]:
        """Return the receivers, without their secrets."""
        return read_all(Webhook, self._transport, _place(tenant))

    def get(self, tenant: str, name: str) -> Webhook:
        """Return one receiver."""
        return decode(Webhook, self._transport.call("GET", _place(tenant, name)))

    def change(self, tenant: str, name: str, *, url: str, kinds: Sequence[str]) -> Webhook:
        """Send elsewhere, or tell of other things."""
        body = {"url": url, "kinds": list(kinds)}
        return decode(Webhook, self._transport.call("PUT", _place(tenant, name), body=body))

    def remove(self, tenant: str, name: str) -> None:
        """Send nothing more to it, and forget what was sent."""
        self._transport.call("DELETE", _place(tenant, name))

    def rotate_secret(self, tenant: str, name: str, *, overlap_hours: int | None = None) -> Webhook:
        """Sign with a new secret, and for the overlap (default: a day) with the one before as well."""
        body = {} if overlap_hours is None else {"overlap_hours": overlap_hours}
        return decode(Webhook, self._transport.call("POST", _place(tenant, name, "rotate-secret"), body=body))

    def ping(self, tenant: str, name: str) -> WebhookDelivery:
        """Have a test event sent."""
        return decode(WebhookDelivery, self._transport.call("POST", _place(tenant, name, "ping")))

    def enable(self, tenant: str, name: str, *, skip_missed: bool = False) -> Webhook:
        """Send again, what was missed first unless that is skipped."""
        body = {"skip_missed": skip_missed}
        return decode(Webhook, self._transport.call("POST", _place(tenant, name, "enable"), body=body))

    def disable(self, tenant: str, name: str, *, reason: str) -> Webhook:
        """Send nothing until it is enabled."""
        return decode(Webhook, self._transport.call("POST", _place(tenant, name, "disable"), body={"reason": reason}))

    def deliveries(
        self, tenant: str, name: str, *, state: str | None = None, kind: str | None = None
    ) -> Iterator[WebhookDelivery]:
        """Yield what was sent, the newest first, without the bodies."""
        wanted = {"state": state, "kind": kind}
        filters = {key: value for key, value in wanted.items() if value}
        return iterate(WebhookDelivery, self._transport, _place(tenant, name, "deliveries"), filters=filters)

    def delivery(self, tenant: str, name: str, number: int) -> WebhookDelivery:
        """Return one delivery with its body."""
        return decode(WebhookDelivery, self._transport.call("GET", _place(tenant, name, "deliveries", str(number))))

    def redeliver(self, tenant: str, name: str, number: int) -> WebhookDelivery:
        """Have an event sent again, with its old id."""
        path = _place(tenant, name, "deliveries", str(number), "redeliver")
        return decode(WebhookDelivery, self._transport.call("POST", path))


def _place(tenant: str, *rest: str) -> str:
    return path_of("webhooks", *rest) if tenant == PLATFORM else path_of("tenants", tenant, "webhooks", *rest)
