"""People who sign in: the actor of a session, and links by which a person sets a password."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import InvalidInput, NotFound
from registry.models import Membership, Person
from registry.permissions import Action, require_on_platform
from registry.services.people import events
from registry.services.tokens import PERSON_SCOPES, roles_in


@dataclass(frozen=True, slots=True)
class PasswordLink:
    """By ``key`` the person sets a password, once and until ``expires_at``; whoever has it can."""

    person: Person
    key: str
    expires_at: datetime


def actor_of_session(person: Person, memberships: list[Membership], *, request_id: str = "", source: str = "") -> Actor:
    """The actor a signed-in person is: all of the roles in all tenants, and every scope that a person can have.

    Args:
        person: who is signed in.
        memberships: all that the person has.
        request_id: of the request.
        source: the address it came from.

    """
    return Actor(
        kind="person",
        id=person.email,
        name=person.name,
        person_id=person.pk,
        scopes=PERSON_SCOPES,
        roles=roles_in(memberships),
        is_platform_admin=person.is_platform_admin,
        request_id=request_id,
        source=source,
        how="web",
    )


@transaction.atomic
def make_password_link(*, actor: Actor, email: str) -> PasswordLink:
    """A link for a person to set a password with; void once it was used, or the person signed in or has another one.

    Raises ``NotFound`` for an address that is nobody's.
    """
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    person = Person.objects.filter(email=email.lower(), is_active=True).first()
    if person is None:
        raise NotFound(_("There is nobody with the address %(email)s.") % {"email": email}, field="email")
    events.password_link_made(actor=actor, person=person)
    key = f"{urlsafe_base64_encode(str(person.pk).encode())}.{default_token_generator.make_token(person)}"
    expires_at = timezone.now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
    return PasswordLink(person=person, key=key, expires_at=expires_at)


def person_of_link(key: str) -> Person:
    """Whose link it is. Raises ``NotFound``, in the same words whatever is wrong with it."""
    name, _dot, token = key.partition(".")
    try:
        number = int(urlsafe_base64_decode(name).decode())
    except ValueError:
        number = 0
    person = Person.objects.filter(pk=number, is_active=True).first()
    if person is None or not default_token_generator.check_token(person, token):
        raise NotFound(_("This link was used, is too old, or is not whole. Ask a platform admin for a new one."))
    return person


@transaction.atomic
def set_password_by_link(*, key: str, password: str, request_id: str = "", source: str = "") -> Person:
    """Set the password of whose link it is. Raises ``InvalidInput`` for one that is too easy to guess."""
    person = Person.objects.select_for_update(of=("self",), no_key=True).get(pk=person_of_link(key).pk)
    person_of_link(key)
    try:
        validate_password(password, person)
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), field="password") from None
    person.set_password(password)
    person.save(update_fields=["password"])
    actor = Actor(
        kind="person",
        id=person.email,
        name=person.name,
        person_id=person.pk,
        request_id=request_id,
        source=source,
        how="web",
    )
    events.password_set(actor=actor, person=person)
    return person


def note_sign_in(*, actor: Actor, by: str) -> None:
    """Tell the audit log that a person signed in; ``by`` is the way: password, passkey or single sign-on."""
    events.person_signed_in(actor=actor, by=by)


def note_password_change(*, actor: Actor, person: Person) -> None:
    """Tell the audit log, in the transaction of the change, that a person has another password."""
    events.password_changed(actor=actor, person=person)


def note_factor(*, actor: Actor, person: Person, factor: str, is_added: bool) -> None:
    """Tell the audit log, in the transaction of the change, that a person has a second factor more or less.

    Args:
        actor: who did it.
        person: whose it is.
        factor: ``totp``, ``webauthn`` (a passkey, too) or ``recovery_codes``, all of them at once.
        is_added: it is there now; else it is gone.

    """
    tell = events.factor_added if is_added else events.factor_removed
    tell(actor=actor, person=person, factor=factor)
