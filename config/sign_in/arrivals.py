"""What the audit log is told of sign-ins, passwords and second factors: receivers of signals.

Those about second factors are of their rows: allauth's own come after the transaction, and the log is told inside it.
"""

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.account.signals import password_changed, user_logged_in
from allauth.core import context
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authentication_failed
from django.db.models.signals import post_delete, post_save
from django.http import HttpRequest

from registry.actors import system_actor
from registry.models import Person
from registry.services.people.accounts import note_factor, note_password_change, note_sign_in
from registry.web.denials import tell_failed_sign_in
from registry.web.reader import actor_of


def connect() -> None:
    """Called once, when Django is set up."""
    user_logged_in.connect(_told, dispatch_uid="lorekeeper.signed_in")
    authentication_failed.connect(_failed, dispatch_uid="lorekeeper.second_factor_failed")
    password_changed.connect(_changed, dispatch_uid="lorekeeper.password_changed")
    post_save.connect(_saved, sender=Authenticator, dispatch_uid="lorekeeper.factor_added")
    post_delete.connect(_removed, sender=Authenticator, dispatch_uid="lorekeeper.factor_removed")


def _told(*, request: HttpRequest, user: Person, **_facts: Any) -> None:  # noqa: ANN401  signals carry anything
    methods = get_authentication_records(request, user)
    by = ", ".join(str(each.get("type") or each["method"]) for each in methods) or "unknown"
    note_sign_in(actor=actor_of(request), by=by)


def _failed(*, request: HttpRequest, user: Person, **_facts: Any) -> None:  # noqa: ANN401  signals carry anything
    tell_failed_sign_in(request, email=user.email)


def _changed(*, request: HttpRequest, user: Person, **_facts: Any) -> None:  # noqa: ANN401  signals carry anything
    note_password_change(actor=actor_of(request), person=user)


def _saved(*, instance: Authenticator, created: bool, **_facts: Any) -> None:  # noqa: ANN401  signals carry anything
    if created:
        _tell_factor(instance, is_added=True)


def _removed(*, instance: Authenticator, **_facts: Any) -> None:  # noqa: ANN401  signals carry anything
    _tell_factor(instance, is_added=False)


def _tell_factor(factor: Authenticator, *, is_added: bool) -> None:
    request = context.request
    actor = system_actor("second factors", how="command") if request is None else actor_of(request)
    note_factor(actor=actor, person=factor.user, factor=str(factor.type), is_added=is_added)
