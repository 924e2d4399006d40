"""What the audit log is told of people and their sign-ins; see ``registry.events``."""

from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN, append_record
from registry.models import Person


def platform_admin_unmade(*, actor: Actor, person: Person) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:admin:unmake",
        object_=_person(person.pk, person.email),
        before={"is_platform_admin": True},
        after={"is_platform_admin": False},
    )


def password_link_made(*, actor: Actor, person: Person) -> None:
    """A link was made by which the person, or whoever has the link, sets a password."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:person:make_password_link",
        object_=_person(person.pk, person.email),
    )


def password_set(*, actor: Actor, person: Person) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:person:set_password",
        object_=_person(person.pk, person.email),
    )


def password_changed(*, actor: Actor, person: Person) -> None:
    """By the person, who knew the old one."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:person:change_password",
        object_=_person(person.pk, person.email),
    )


def factor_added(*, actor: Actor, person: Person, factor: str) -> None:
    """``factor``: ``totp``, ``webauthn`` or ``recovery_codes``, all of them at once."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:person:add_factor",
        object_=_person(person.pk, person.email),
        after={"factor": factor},
    )


def factor_removed(*, actor: Actor, person: Person, factor: str) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:person:remove_factor",
        object_=_person(person.pk, person.email),
        before={"factor": factor},
    )


def identity_linked(*, actor: Actor, person: Person, subject: str) -> None:
    """From now on who comes with this identity of the provider is the person."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:person:link_identity",
        object_=_person(person.pk, person.email),
        after={"subject": subject},
    )


def person_signed_in(*, actor: Actor, by: str) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:person:sign_in",
        object_=_person(actor.person_id, actor.id),
        after={"by": by, "source": actor.source},
    )


def _person(key: int | None, email: str) -> dict[str, str]:
    return {"kind": "person", "id": str(key), "name": email}
