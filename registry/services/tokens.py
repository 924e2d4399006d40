"""Making, revoking and checking API tokens."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor, ActorKind, How
from registry.errors import InvalidInput, NotFound, TokenRefused
from registry.models import ApiToken, Membership, Person, Tenant
from registry.permissions import Action, require_in_tenant, require_on_platform
from registry.services.audit.denials import note_log_in
from registry.states import Role, Scope, TokenKind

APPLICATION_SCOPES: Final = frozenset({Scope.INFER})
PERSON_SCOPES: Final = frozenset(
    {Scope.READ, Scope.UPLOAD, Scope.APPROVE, Scope.RELEASE, Scope.OPERATE, Scope.AUDIT, Scope.ADMIN}
)
_KIND_SCOPES: Final = {
    TokenKind.PERSON: PERSON_SCOPES,
    TokenKind.APPLICATION: APPLICATION_SCOPES,
    TokenKind.GATEWAY: frozenset({Scope.DEMAND}),
    TokenKind.NODE: frozenset({Scope.NODE}),
    TokenKind.MONITOR: frozenset({Scope.METRICS}),
}
_TOKEN: Final = re.compile(r"lk_(?P<prefix>[0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII)
_USED_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made; ``text`` is never to be had again."""

    token: ApiToken
    text: str


@transaction.atomic
def create_tenant_token(
    *,
    actor: Actor,
    tenant: Tenant,
    name: str,
    kind: TokenKind,
    scopes: Iterable[Scope],
    person_email: str | None = None,
    expires_at: datetime | None = None,
) -> NewToken:
    """Make a token for a member of ``tenant`` or for one of its applications."""
    require_in_tenant(actor, Action.MANAGE_TENANT, tenant.pk)
    if kind not in (TokenKind.PERSON, TokenKind.APPLICATION):
        raise InvalidInput(_("A tenant makes tokens for persons and applications only."), field="kind")
    person = _member(tenant, person_email) if kind is TokenKind.PERSON else None
    return _issue(actor, name=name, kind=kind, scopes=scopes, person=person, tenant=tenant, expires_at=expires_at)


@transaction.atomic
def create_own_token(
    *, actor: Actor, tenant: str, name: str, scopes: Iterable[Scope], expires_at: datetime | None
) -> NewToken:
    """Make a token for the person that ``actor`` is, good in one of the tenants that the person is a member of."""
    owner = Tenant.objects.filter(name=tenant, pk__in=list(actor.roles)).first()
    if owner is None or actor.person_id is None:
        raise InvalidInput(_("You are not a member of this tenant."), field="tenant")
    person = Person.objects.get(pk=actor.person_id)
    wanted = frozenset(scopes)
    if not wanted <= actor.scopes:
        raise InvalidInput(_("A token can't be good for more than what it is made with."), field="scopes")
    return _issue(
        actor, name=name, kind=TokenKind.PERSON, scopes=wanted, person=person, tenant=owner, expires_at=expires_at
    )


@transaction.atomic
def revoke_own_token(*, actor: Actor, prefix: str) -> ApiToken:
    """Revoke one of the actor's own at once. A token already revoked stays as it is."""
    own = ApiToken.objects.filter(person=actor.person_id, prefix=prefix) if actor.person_id else ApiToken.objects.none()
    token = own.select_for_update(of=("self",), no_key=True).first()
    if token is None:
        raise NotFound(_("You have no token with this prefix."), field="prefix")
    withdraw_token(actor=actor, token=token)
    return token


@transaction.atomic
def create_platform_token(
    *, actor: Actor, name: str, kind: TokenKind, scopes: Iterable[Scope], person: Person | None = None
) -> NewToken:
    """Make a token that belongs to no tenant: a platform admin's, a gateway's, a node's or a monitor's."""
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    return _issue(actor, name=name, kind=kind, scopes=scopes, person=person, tenant=None, expires_at=None)


@transaction.atomic
def revoke_token(*, actor: Actor, tenant: Tenant, prefix: str) -> ApiToken:
    """Revoke at once. A token already revoked stays as it is."""
    require_in_tenant(actor, Action.MANAGE_TENANT, tenant.pk)
    token = ApiToken.objects.select_for_update(of=("self",), no_key=True).filter(tenant=tenant, prefix=prefix).first()
    if token is None:
        raise NotFound(_("This tenant has no token with this prefix."), field="prefix")
    withdraw_token(actor=actor, token=token)
    return token


@transaction.atomic
def revoke_platform_token(*, actor: Actor, prefix: str) -> ApiToken:
    """Revoke an admin's, a gateway's, a node's or a monitor's token at once. A token already revoked stays as it is."""
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    found = ApiToken.objects.select_for_update(of=("self",), no_key=True).filter(tenant=None, prefix=prefix)
    token = found.first()
    if token is None:
        raise NotFound(_("The platform has no token with this prefix."), field="prefix")
    withdraw_token(actor=actor, token=token)
    return token


def withdraw_token(*, actor: Actor, token: ApiToken) -> None:
    """Mark a locked token as revoked; the caller has checked the permission."""
    if token.revoked_at is not None:
        return
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])
    events.token_revoked(actor=actor, token=token)


def authenticate_token(*, text: str, request_id: str = "", source: str = "", how: How = "api") -> Actor:
    """The actor a token speaks for. Raises ``TokenRefused``, in the same words whatever is wrong but expiry."""
    form = _TOKEN.fullmatch(text)
    if form is None:
        raise TokenRefused(_("The token is unknown."))
    token = ApiToken.objects.select_related("person", "tenant").filter(prefix=form["prefix"]).first()
    if token is None or not hmac.compare_digest(token.digest, digest_of(text)):
        raise TokenRefused(_("The token is unknown."), prefix=form["prefix"])
    _require_usable(token)
    _mark_used(token)
    actor = _actor_for(token, request_id=request_id, source=source, how=how)
    note_log_in(actor=actor, chain=events.chain_of_token(token), token=token)
    return actor


def digest_of(text: str) -> str:
    """SHA-256 of a token's text, hex; 256 random bits need no slow hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def _issue(
    actor: Actor,
    *,
    name: str,
    kind: TokenKind,
    scopes: Iterable[Scope],
    person: Person | None,
    tenant: Tenant | None,
    expires_at: datetime | None,
) -> NewToken:
    wanted = frozenset(scopes)
    foreign = wanted - _KIND_SCOPES[kind]
    if foreign or not wanted:
        allowed = ", ".join(sorted(_KIND_SCOPES[kind]))
        raise InvalidInput(
            _("A token for a %(kind)s takes scopes of: %(allowed)s.") % {"kind": kind, "allowed": allowed},
            field="scopes",
        )
    prefix = secrets.token_hex(6)
    text = f"lk_{prefix}_{secrets.token_urlsafe(32)}"
    token = ApiToken.objects.create(
        prefix=prefix,
        digest=digest_of(text),
        name=name,
        kind=kind.value,
        person=person,
        tenant=tenant,
        scopes=sorted(scope.value for scope in wanted),
        expires_at=expires_at,
    )
    events.token_created(actor=actor, token=token)
    return NewToken(token=token, text=text)


def _member(tenant: Tenant, email: str | None) -> Person:
    person = Person.objects.filter(email=(email or "").lower(), memberships__tenant=tenant).first()
    if person is None:
        raise InvalidInput(
            _("%(email)s is not a member of %(tenant)s. Add the member first.") % {"email": email, "tenant": tenant},
            field="person_email",
        )
    return person


def _require_usable(token: ApiToken) -> None:
    told = {"prefix": token.prefix, "chain": events.chain_of_token(token)}
    if token.revoked_at or (token.person is not None and not token.person.is_active):
        raise TokenRefused(_("The token is unknown."), **told)
    if token.expires_at is not None and token.expires_at <= timezone.now():
        message = _("The token expired on %(when)s. Make a new one.") % {"when": token.expires_at.date()}
        raise TokenRefused(message, **told)


def _mark_used(token: ApiToken) -> None:
    now = timezone.now()
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _USED_EVERY)
    if token.last_used_at is None or token.last_used_at < now - _USED_EVERY:
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


def _actor_for(token: ApiToken, *, request_id: str, source: str, how: How) -> Actor:
    person = token.person
    kind: ActorKind = "person" if person else _SERVICE_KINDS[TokenKind(token.kind)]
    return Actor(
        kind=kind,
        id=person.email if person else token.prefix,
        name=person.name if person else token.name,
        person_id=person.pk if person else None,
        token_prefix=token.prefix,
        scopes=frozenset(Scope(scope) for scope in token.scopes),
        roles=_roles_of(person, token.tenant_id) if person else {},
        tenant_id=token.tenant_id,
        is_platform_admin=bool(person and person.is_platform_admin and token.tenant_id is None),
        request_id=request_id,
        source=source,
        how=how,
    )


_SERVICE_KINDS: Final[dict[TokenKind, ActorKind]] = {
    TokenKind.APPLICATION: "application",
    TokenKind.GATEWAY: "gateway",
    TokenKind.NODE: "node",
    TokenKind.MONITOR: "monitor",
}


def _roles_of(person: Person, tenant_id: int | None) -> dict[int, frozenset[Role]]:
    """Roles by tenant; a token made in one tenant carries that tenant's roles alone."""
    memberships = Membership.objects.filter(person=person)
    if tenant_id is not None:
        memberships = memberships.filter(tenant_id=tenant_id)
    return roles_in(memberships)


def roles_in(memberships: Iterable[Membership]) -> dict[int, frozenset[Role]]:
    """Roles by tenant."""
    roles: dict[int, set[Role]] = {}
    for membership in memberships:
        roles.setdefault(membership.tenant_id, set()).add(Role(membership.role))
    return {tenant: frozenset(held) for tenant, held in roles.items()}
