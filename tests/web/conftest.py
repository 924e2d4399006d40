"""People who are signed in, through Django's test client: the whole of a request but the socket."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from registry.models import Person, Tenant
from registry.states import Role
from tests.factories.registry import make_person

SignIn = Callable[..., Client]
PASSWORD = "correct horse battery staple"


def signed_in(person: Person) -> Client:
    browser = Client(raise_request_exception=True)
    browser.force_login(person, backend="allauth.account.auth_backends.AuthenticationBackend")
    return browser


def with_password(person: Person) -> Person:
    person.set_password(PASSWORD)
    person.save(update_fields=["password"])
    return person


def shown(browser: Client, address: str) -> dict[str, Any]:
    """What the form at the address sends when nothing in it is changed."""
    form = browser.get(address).context["form"]
    return {name: form[name].value() for name in form.fields if form[name].value() is not None}


def filled(browser: Client, address: str, **values: Any) -> Any:
    """The form at the address, sent as it is shown but for ``values``."""
    return browser.post(address, {**shown(browser, address), **values})


@pytest.fixture(autouse=True)
def _nobody_tried_before() -> None:
    """Tries to sign in are counted in the cache, which tests share."""
    cache.clear()


@pytest.fixture
def sign_in() -> SignIn:
    """``sign_in(person)`` or ``sign_in(roles={tenant: [role]})``: a browser in which that person is signed in."""

    def made_and_signed_in(
        person: Person | None = None,
        *,
        roles: dict[Tenant, Iterable[Role]] | None = None,
        is_platform_admin: bool = False,
    ) -> Client:
        return signed_in(person or make_person(roles=roles, is_platform_admin=is_platform_admin))

    return made_and_signed_in
