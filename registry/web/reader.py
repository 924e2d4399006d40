"""The signed-in person of a page: the actor that services and selectors are given, and the tenants to choose from."""

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import NotAuthenticated
from registry.models import Membership, Person, Tenant
from registry.services.people.accounts import actor_of_session

# So many tenants are offered to a platform admin, who may see all of them; the list of tenants has the others.
MOST_TENANTS: Final = 200
TENANT_IN_SESSION: Final = "tenant"


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads.

    Attributes:
        actor: the person as services and selectors take it.
        tenants: those to switch between, by name: all of one's own, and the one looked at.
        tenant: the one that pages which are about one tenant lead to; None for somebody who is in none.
        has_more: there are more tenants than those.

    """

    actor: Actor
    tenants: tuple[Tenant, ...]
    tenant: Tenant | None
    has_more: bool = False


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
    has_more = False
    if actor.is_platform_admin:
        first = list(Tenant.objects.order_by("name")[: MOST_TENANTS + 1])
        has_more = len(first) > MOST_TENANTS
        own |= {each.pk: each for each in first[:MOST_TENANTS]} | _beyond(request, has_more=has_more)
    tenants = tuple(sorted(own.values(), key=lambda each: each.name))
    return Reader(actor=actor, tenants=tenants, tenant=_current(request, tenants), has_more=has_more)


def _beyond(request: HttpRequest, *, has_more: bool) -> dict[int, Tenant]:
    """The tenant that an admin looks at, as it may be behind those that are offered."""
    wanted = _wanted(request) if has_more else None
    return {each.pk: each for each in Tenant.objects.filter(name=wanted)} if wanted else {}


def _current(request: HttpRequest, tenants: tuple[Tenant, ...]) -> Tenant | None:
    wanted = _wanted(request)
    return next((each for each in tenants if each.name == wanted), tenants[0] if tenants else None)


def _wanted(request: HttpRequest) -> str | None:
    """The one in the address, else the one looked at last."""
    match = request.resolver_match
    return (match.kwargs.get("tenant") if match else None) or request.session.get(TENANT_IN_SESSION)
