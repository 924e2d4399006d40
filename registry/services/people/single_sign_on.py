"""A person who comes from the provider of identities: found or made, with the roles that the groups there give."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext as _

from registry.actors import Actor, system_actor
from registry.errors import PermissionDenied
from registry.events import platform_admin_made
from registry.models import Membership, Person, Tenant
from registry.services.people.events import identity_linked, platform_admin_unmade
from registry.services.tenants import add_member, ensure_person, remove_member
from registry.states import Role

Grants = AbstractSet[tuple[str, Role]]


@dataclass(frozen=True, slots=True)
class Identity:
    """What the provider said of somebody.

    Attributes:
        email: the address; the person here is the one with the same.
        is_verified: the address is known to be theirs.
        name: what people call them.
        known_as: primary key of the person who came with this identity before.
        request_id: of the request.
        source: the address it came from.

    """

    email: str
    is_verified: bool
    name: str = ""
    known_as: int | None = None
    request_id: str = ""
    source: str = ""


@transaction.atomic
def arrive(*, identity: Identity, roles: Grants, managed: Grants, is_platform_admin: bool | None) -> Person:
    """The person who signs in, with the roles that the groups give, each change with its audit record.

    Args:
        identity: what the provider said.
        roles: what the groups of this person give, as pairs of a tenant's name and a role.
        managed: what groups can give at all: of these, what is not in ``roles`` is taken away. Roles that no group
            gives are none of the provider's business and stay.
        is_platform_admin: what the groups say of that; None if no group gives it.

    Raises ``PermissionDenied`` for an address that isn't verified, for who is not active here, and for whom neither a
    group nor an administrator here gave anything.

    """
    actor = _provider(identity)
    person = _known(identity)
    if person is None:
        if not (roles or is_platform_admin):
            raise PermissionDenied(
                _("None of your groups may use Lorekeeper. Ask whoever looks after them to add you to one.")
            )
        person = ensure_person(email=identity.email, name=identity.name)
    if not person.is_active:
        raise PermissionDenied(_("Your account was closed. Ask a platform admin."))
    _give_roles(actor, person, roles=roles, managed=managed)
    if is_platform_admin is not None:
        _give_platform(actor, person, is_platform_admin=is_platform_admin)
    return person


def note_link(*, identity: Identity, person: Person, subject: str) -> None:
    """Tell the audit log, in the transaction of the change, that the identity stands for the person from now on.

    Args:
        identity: what the provider said.
        person: who comes with it.
        subject: what the provider calls it (``sub``).

    """
    identity_linked(actor=_provider(identity), person=person, subject=subject)


def _provider(identity: Identity) -> Actor:
    return system_actor("single sign-on", request_id=identity.request_id, how="web")


def _known(identity: Identity) -> Person | None:
    """Locked, before anything is written: two identities that come at once as the same person take turns."""
    people = Person.objects.select_for_update(of=("self",), no_key=True)
    if identity.known_as is not None:
        return people.get(pk=identity.known_as)
    if not (identity.email and identity.is_verified):
        raise PermissionDenied(_("Your provider of identities did not say that your e-mail address is verified."))
    return people.filter(email=identity.email.lower()).first()


def _give_roles(actor: Actor, person: Person, *, roles: Grants, managed: Grants) -> None:
    tenants = {each.name: each for each in Tenant.objects.filter(name__in={name for name, _role in managed})}
    held = {
        (membership.tenant.name, Role(membership.role))
        for membership in Membership.objects.select_related("tenant").filter(person=person)
    }
    for name, role in sorted(roles - held):
        if name in tenants:
            add_member(actor=actor, tenant=tenants[name], email=person.email, role=role)
    for name, role in sorted((managed - roles) & held):
        remove_member(actor=actor, tenant=tenants[name], email=person.email, role=role)


def _give_platform(actor: Actor, person: Person, *, is_platform_admin: bool) -> None:
    if person.is_platform_admin == is_platform_admin:
        return
    person.is_platform_admin = is_platform_admin
    person.save(update_fields=["is_platform_admin"])
    if is_platform_admin:
        platform_admin_made(actor=actor, person=person)
    else:
        platform_admin_unmade(actor=actor, person=person)
