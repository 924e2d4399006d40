"""What the audit log is told of sign-ins: receivers of the signals that allauth sends."""

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.account.signals import user_logged_in
from allauth.mfa.signals import authentication_failed
from django.http import HttpRequest

from registry.models import Person
from registry.services.people.accounts import note_sign_in
from registry.web.denials import tell_failed_sign_in
from registry.web.reader import actor_of


def connect() -> None:
    """Called once, when Django is set up."""
    user_logged_in.connect(_told, dispatch_uid="lorekeeper.signed_in")
    authentication_failed.connect(_failed, dispatch_uid="lorekeeper.second_factor_failed")


def _told(*, request: HttpRequest, user: Person, **_facts: Any) -> None:  # noqa: ANN401  signals carry anything
    methods = get_authentication_records(request, user)
    by = ", ".join(str(each.get("type") or each["method"]) for each in methods) or "unknown"
    note_sign_in(actor=actor_of(request), by=by)


def _failed(*, request: HttpRequest, user: Person, **_facts: Any) -> None:  # noqa: ANN401  signals carry anything
    tell_failed_sign_in(request, email=user.email)
