"""Receivers of events: made, changed, given new secrets, disabled and removed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN
from registry.errors import InvalidInput, NameTaken, NotFound, PreconditionFailed, WrongState
from registry.models import AuditRecord, Tenant, WebhookCursor, WebhookEndpoint
from registry.naming import check_name
from registry.permissions import Action, require_in_tenant, require_on_platform
from registry.services.webhooks import events
from registry.states import DeliveryState
from registry.transitions import move_delivery
from registry.webhooks.addresses import AddressRefused, check_url
from registry.webhooks.kinds import PATTERNS
from registry.webhooks.sealing import seal
from registry.webhooks.signature import new_secret, secret_text

MAX_ENDPOINTS: Final = 20
MAX_OVERLAP: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class NewSecret:
    """An endpoint with the secret just made for it; ``text`` is never to be had again."""

    endpoint: WebhookEndpoint
    text: str


@transaction.atomic
def create_webhook(*, actor: Actor, tenant: Tenant | None, name: str, url: str, kinds: Iterable[str]) -> NewSecret:
    """Tell a receiver of what happens from now on: of the tenant's chain, or without a tenant of every chain.

    Raises:
        InvalidInput: names the field; also for an address where no delivery may go.
        NameTaken: the owner has one of that name.

    """
    _require(actor, tenant)
    _take_turns(tenant)
    owned = WebhookEndpoint.objects.filter(tenant=tenant)
    if owned.filter(name=check_name(name, field="name")).exists():
        raise NameTaken(_("There is already a webhook named %(name)s.") % {"name": name}, field="name")
    if owned.count() >= MAX_ENDPOINTS:
        raise InvalidInput(_("At most %(most)d webhooks.") % {"most": MAX_ENDPOINTS}, field="name")
    endpoint = WebhookEndpoint(tenant=tenant, name=name, url=_checked(url), kinds=_known(kinds))
    secret = _give_secret(endpoint)
    endpoint.save(force_insert=True)
    _begin_at(endpoint, events.endpoint_created(actor=actor, endpoint=endpoint))
    return NewSecret(endpoint, secret_text(secret))


@transaction.atomic
def change_webhook(
    *,
    actor: Actor,
    endpoint: WebhookEndpoint,
    url: str,
    kinds: Iterable[str],
    expected: WebhookEndpoint | None = None,
) -> WebhookEndpoint:
    """Send elsewhere, or tell of other things, from the next delivery on. Quiet when it is so already.

    What is on its way goes to the new address. Raises ``PreconditionFailed`` when it is not as ``expected`` any more.
    """
    locked = lock_webhook(actor, endpoint)
    before = events.endpoint_facts(locked)
    locked.url, locked.kinds = _checked(url), _known(kinds)
    if events.endpoint_facts(locked) == before:
        return locked
    if expected is not None and before != events.endpoint_facts(expected):
        raise PreconditionFailed(_("The webhook was changed meanwhile. Read it again and repeat your change."))
    locked.save(update_fields=["url", "kinds"])
    events.endpoint_changed(actor=actor, endpoint=locked, before=before)
    return locked


@transaction.atomic
def remove_webhook(*, actor: Actor, endpoint: WebhookEndpoint) -> None:
    """Send nothing more to it and forget what was sent; what of it matters stays in the audit log."""
    locked = lock_webhook(actor, endpoint)
    events.endpoint_removed(actor=actor, endpoint=locked)
    locked.delete()


@transaction.atomic
def rotate_secret(*, actor: Actor, endpoint: WebhookEndpoint, overlap: timedelta) -> NewSecret:
    """Sign with a new secret, and for the ``overlap`` with the one before as well."""
    locked = lock_webhook(actor, endpoint)
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise InvalidInput(_("Between 0 and %(most)d days.") % {"most": MAX_OVERLAP.days}, field="overlap_hours")
    keeps = overlap > timedelta(0)
    locked.previous_secret = locked.secret if keeps else None
    locked.previous_until = timezone.now() + overlap if keeps else None
    secret = _give_secret(locked)
    locked.save(update_fields=["secret", "previous_secret", "previous_until"])
    events.secret_rotated(actor=actor, endpoint=locked)
    return NewSecret(locked, secret_text(secret))


@transaction.atomic
def disable_webhook(*, actor: Actor, endpoint: WebhookEndpoint, reason: str) -> WebhookEndpoint:
    """Send nothing to it until it is enabled. Disabled already: no change."""
    locked = lock_webhook(actor, endpoint)
    if locked.disabled_at is None:
        switch_off(actor=actor, endpoint=locked, reason=reason)
    return locked


@transaction.atomic
def enable_webhook(*, actor: Actor, endpoint: WebhookEndpoint, skip_missed: bool = False) -> WebhookEndpoint:
    """Send again: what it missed first, or with ``skip_missed`` only what happens from now on. Enabled: no change.

    What is skipped and was on its way already is parked: it can be sent again by hand.
    """
    locked = lock_webhook(actor, endpoint)
    if locked.disabled_at is None:
        return locked
    locked.disabled_at, locked.disabled_reason, locked.failing_since = None, "", None
    locked.save(update_fields=["disabled_at", "disabled_reason", "failing_since"])
    if skip_missed:
        head = Coalesce(Subquery(_heads(OuterRef("chain"))), F("seq"))
        locked.cursors.update(seq=head)
        _park_pending(locked)
    events.endpoint_enabled(actor=actor, endpoint=locked, skips_missed=skip_missed)
    return locked


def lock_webhook(actor: Actor, endpoint: WebhookEndpoint) -> WebhookEndpoint:
    """The endpoint locked, for an actor who may change it. Raises ``NotFound`` when it was removed meanwhile."""
    _require(actor, endpoint.tenant)
    locked = find_locked(endpoint.pk)
    if locked is None:
        raise NotFound(_("There is no webhook named %(name)s.") % {"name": endpoint.name}, field="webhook")
    return locked


def find_locked(pk: UUID, *, waits: bool = True) -> WebhookEndpoint | None:
    """The endpoint locked, before anything else that is written for it; None: it is gone, or locked already."""
    found = WebhookEndpoint.objects.select_related("tenant")
    locked = found.select_for_update(of=("self",), no_key=True, skip_locked=not waits)
    return locked.filter(pk=pk).first()


def switch_off(*, actor: Actor, endpoint: WebhookEndpoint, reason: str) -> None:
    """Disable a locked endpoint that is enabled; the caller has checked the permission."""
    endpoint.disabled_at, endpoint.disabled_reason = timezone.now(), reason
    endpoint.save(update_fields=["disabled_at", "disabled_reason"])
    events.endpoint_disabled(actor=actor, endpoint=endpoint)


def _park_pending(endpoint: WebhookEndpoint) -> None:
    pending = endpoint.deliveries.filter(state=DeliveryState.PENDING.value).order_by("pk")
    for delivery in pending.select_for_update(of=("self",), no_key=True):
        move_delivery(delivery, was=DeliveryState.PENDING, to=DeliveryState.PARKED, ended_at=timezone.now())


def require_enabled(endpoint: WebhookEndpoint) -> None:
    if endpoint.disabled_at is not None:
        raise WrongState(_("The webhook %(name)s is disabled. Enable it first.") % {"name": endpoint})


def _require(actor: Actor, tenant: Tenant | None) -> None:
    if tenant is None:
        require_on_platform(actor, Action.MANAGE_PLATFORM)
    else:
        require_in_tenant(actor, Action.MANAGE_TENANT, tenant.pk)


def _take_turns(tenant: Tenant | None) -> None:
    """Two that are made at once are counted one after the other."""
    with transaction.get_connection().cursor() as cursor:
        owner = "" if tenant is None else tenant.name
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"webhooks of {owner}"])


def _checked(url: str) -> str:
    try:
        check_url(url, allowed=settings.WEBHOOK_NETWORKS)
    except AddressRefused as error:
        raise InvalidInput(
            _("No delivery can go to this address: %(reason)s.") % {"reason": error}, field="url"
        ) from None
    return url


def _known(kinds: Iterable[str]) -> list[str]:
    wanted = sorted(set(kinds))
    unknown = [kind for kind in wanted if kind not in PATTERNS]
    if unknown or not wanted:
        shown = ", ".join(pattern for pattern in PATTERNS if pattern.endswith("*"))
        message = _("There is no such kind of event: %(kind)s. Families are %(known)s.")
        raise InvalidInput(message % {"kind": ", ".join(unknown) or "-", "known": shown}, field="kinds")
    return wanted


def _give_secret(endpoint: WebhookEndpoint) -> bytes:
    secret = new_secret()
    endpoint.secret = seal(secret, key=settings.SECRET_KEY, endpoint=endpoint.pk)
    return secret


def _begin_at(endpoint: WebhookEndpoint, seq: int) -> None:
    """Tell the endpoint of what comes behind its own record, and of other chains what comes behind their ends."""
    if endpoint.tenant is not None:
        WebhookCursor.objects.create(endpoint=endpoint, chain=endpoint.tenant.name, seq=seq)
        return
    WebhookCursor.objects.create(endpoint=endpoint, chain=PLATFORM_CHAIN, seq=seq)
    tenants = Tenant.objects.annotate(head=Coalesce(Subquery(_heads(OuterRef("name"))), Value(0)))
    WebhookCursor.objects.bulk_create(
        WebhookCursor(endpoint=endpoint, chain=name, seq=head) for name, head in tenants.values_list("name", "head")
    )


def _heads(chain: OuterRef) -> QuerySet[AuditRecord, Any]:
    return AuditRecord.objects.filter(chain=chain).order_by("-seq").values("seq")[:1]
