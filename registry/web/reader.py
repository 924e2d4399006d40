"""The signed-in person of a page: the actor that services and selectors are given, and the tenants to choose from."""

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import NotAuthenticated
from registry.models import Membership, Person, Tenant
from registry.services.people.accounts import actor_of_session

# So many tenants are offered to a platform admin, who may see all of them.
MOST_TENANTS: Final = 200
TENANT_IN_SESSION: Final = "tenant"


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads.

    Attributes:
        actor: the person as services and selectors take it.
        tenants: those to switch between, by name.
        tenant: the one that pages which are about one tenant lead to; None for somebody who is in none.

    """

    actor: Actor
    tenants: tuple[Tenant, ...]
    tenant: Tenant | None


def actor_of(request: HttpRequest) -> Actor:
    """The actor of a page's request. Raises ``NotAuthenticated`` when nobody is signed in."""
    return reader_of(request).actor


def reader_of(request: HttpRequest) -> Reader:
    """Read once for each request. Raises ``NotAuthenticated`` when nobody is signed in."""
    known: Reader | None = getattr(request, "lorekeeper_reader", None)
    if known is None:
        known = _read(request)
        request.lorekeeper_reader = known  # type: ignore[attr-defined]  # kept with the request that it is of
    return known


def _read(request: HttpRequest) -> Reader:
    person = request.user
    if not isinstance(person, Person):
        raise NotAuthenticated(_("Sign in first."))
    memberships = list(Membership.objects.select_related("tenant").filter(person=person).order_by("tenant__name"))
    actor = actor_of_session(
        person,
        memberships,
        request_id=request.META.get("LOREKEEPER_REQUEST_ID", ""),
        source=request.META.get("REMOTE_ADDR", ""),
    )
    own = {each.tenant_id: each.tenant for each in memberships}
    tenants = tuple(Tenant.objects.order_by("name")[:MOST_TENANTS]) if actor.is_platform_admin else tuple(own.values())
    return Reader(actor=actor, tenants=tenants, tenant=_current(request, tenants))


def _current(request: HttpRequest, tenants: tuple[Tenant, ...]) -> Tenant | None:
    """The one in the address, else the one looked at last, else the first."""
    match = request.resolver_match
    wanted = (match.kwargs.get("tenant") if match else None) or request.session.get(TENANT_IN_SESSION)
    return next((each for each in tenants if each.name == wanted), tenants[0] if tenants else None)
