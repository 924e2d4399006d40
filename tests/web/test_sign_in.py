from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from registry.models import AuditRecord
from registry.services.people.accounts import make_password_link
from registry.states import Role
from tests.factories.registry import make_actor, make_person, make_tenant
from tests.web.conftest import PASSWORD, SignIn, with_password

pytestmark = pytest.mark.django_db
LOGIN = "/ui/account/login"


def test_a_person_signs_in_with_a_password_and_is_led_to_where_they_wanted_to_go(client: Client) -> None:
    person = with_password(make_person())
    asked = client.get("/ui/tokens")
    assert client.get(asked["Location"]).status_code == 200
    arrived = client.post(asked["Location"], {"login": person.email, "password": PASSWORD, "next": "/ui/tokens"})
    assert arrived["Location"] == "/ui/tokens"
    told = AuditRecord.objects.get(action="platform:person:sign_in")
    assert told.after == {"by": "password", "source": "127.0.0.1"}


def test_a_wrong_password_is_told_to_the_audit_log(client: Client) -> None:
    person = with_password(make_person())
    answer = client.post(LOGIN, {"login": person.email, "password": "wrong password"})
    assert answer.status_code == 200
    told = AuditRecord.objects.get(action="platform:access:deny")
    assert told.object == {"kind": "sign_in", "id": person.email, "name": "sign_in_failed"}


def test_after_five_wrong_passwords_the_right_one_is_refused_too(client: Client) -> None:
    person = with_password(make_person())
    for _number in range(5):
        client.post(LOGIN, {"login": person.email, "password": "wrong password"})
    answer = client.post(LOGIN, {"login": person.email, "password": PASSWORD})
    assert answer.status_code == 200
    assert settings.SESSION_COOKIE_NAME not in client.cookies
    assert client.get("/ui/").status_code == 302


def test_while_tries_are_not_counted_nobody_signs_in_and_a_page_says_so(client: Client, settings: Any) -> None:
    person = with_password(make_person())
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    }
    assert client.get(LOGIN).status_code == 200
    for password in (PASSWORD, "wrong password"):
        answer = client.post(LOGIN, {"login": person.email, "password": password})
        assert answer.status_code == 503
        assert "Tries to sign in can&#x27;t be counted now" in answer.content.decode()
    assert client.get("/ui/").status_code == 302


def test_a_link_sets_a_password_once(client: Client) -> None:
    person = make_person()
    link = make_password_link(actor=make_actor(), email=person.email)
    address = f"/ui/password/{link.key}"
    assert client.get(address).status_code == 200
    assert client.post(address, {"password": "short", "again": "short"}).status_code == 422
    assert client.post(address, {"password": PASSWORD, "again": PASSWORD})["Location"] == LOGIN
    assert client.post(LOGIN, {"login": person.email, "password": PASSWORD}).status_code == 302
    assert Client().get(address).status_code == 404


def test_nobody_signs_up(client: Client) -> None:
    assert client.get("/ui/account/signup")["Location"] == LOGIN


@pytest.mark.parametrize(
    "address",
    [
        "/ui/",
        "/ui/account",
        "/ui/tokens",
        "/ui/tokens/new",
        "/ui/preferences",
        "/ui/account/second-factor/",
        "/ui/account/second-factor/totp/activate/",
        "/ui/account/second-factor/webauthn/",
        "/ui/account/second-factor/webauthn/add/",
        "/ui/account/sessions",
        "/ui/account/password/change",
        "/ui/account/reauthenticate",
    ],
)
def test_a_page_about_the_reader_is_shown(address: str, sign_in: SignIn) -> None:
    person = with_password(make_person(roles={make_tenant(): [Role.REVIEWER], make_tenant(): list(Role)}))
    assert sign_in(person).get(address, follow=True).status_code == 200
