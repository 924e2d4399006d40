from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import InvalidInput, NameTaken
from registry.models import Membership, Person, Tenant
from registry.naming import check_tenant_name
from registry.permissions import Action, require_in_tenant, require_on_platform
from registry.states import Role


@transaction.atomic
def create_tenant(*, actor: Actor, name: str, title: str = "") -> Tenant:
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    tenant, created = Tenant.objects.get_or_create(
        name=check_tenant_name(name, field="name"), defaults={"title": title}
    )
    if not created:
        raise NameTaken(_("There is already a tenant named %(name)s.") % {"name": name}, field="name")
    events.tenant_created(actor=actor, tenant=tenant)
    return tenant


@transaction.atomic
def add_member(*, actor: Actor, tenant: Tenant, email: str, role: Role, name: str = "") -> Membership:
    """Give a person a role; the person is made when the address is new. Already a member in that role: no change."""
    require_in_tenant(actor, Action.MANAGE_TENANT, tenant.pk)
    person = ensure_person(email=email, name=name)
    membership, created = Membership.objects.get_or_create(person=person, tenant=tenant, role=role.value)
    if created:
        events.member_added(actor=actor, membership=membership)
    return membership


@transaction.atomic
def remove_member(*, actor: Actor, tenant: Tenant, email: str, role: Role) -> None:
    """Take a role away. Not a member in that role: no change."""
    require_in_tenant(actor, Action.MANAGE_TENANT, tenant.pk)
    gone, _by_model = Membership.objects.filter(person__email=email.lower(), tenant=tenant, role=role.value).delete()
    if gone:
        events.member_removed(actor=actor, tenant=tenant, email=email.lower(), role=role.value)


def ensure_person(*, email: str, name: str = "") -> Person:
    """The person with that address, made when new."""
    address = email.lower()
    try:
        validate_email(address)
    except ValidationError:
        raise InvalidInput(_("“%(email)s” is not an e-mail address.") % {"email": email}, field="email") from None
    person, created = Person.objects.get_or_create(email=address, defaults={"name": name or address.partition("@")[0]})
    if created:
        person.set_unusable_password()
        person.save(update_fields=["password"])
    return person
