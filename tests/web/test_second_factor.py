import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.core.cache import cache
from django.test import Client

from registry.models import AuditRecord, Person
from tests.factories.registry import make_person
from tests.web.conftest import PASSWORD, with_password

pytestmark = pytest.mark.django_db
LOGIN = "/ui/account/login"
ACTIVATE = "/ui/account/second-factor/totp/activate/"


def code_of(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time()))))


def enter(browser: Client, person: Person) -> None:
    browser.post(LOGIN, {"login": person.email, "password": PASSWORD})


def activated(browser: Client, person: Person) -> str:
    """Turn the authenticator app on, as a person does; its secret."""
    enter(browser, person)
    asked = browser.get(ACTIVATE)
    assert asked.status_code == 302, "changing factors asks for the password again"
    browser.post(asked["Location"], {"password": PASSWORD})
    page = browser.get(ACTIVATE)
    secret = str(page.context["form"].secret)
    assert browser.post(ACTIVATE, {"code": code_of(secret)}).status_code == 302
    return secret


def test_with_an_authenticator_app_the_password_alone_is_not_enough(client: Client) -> None:
    person = with_password(make_person())
    secret = activated(client, person)
    other = Client()
    asked = other.post(LOGIN, {"login": person.email, "password": PASSWORD})
    assert asked["Location"].startswith("/ui/account/second-factor/authenticate/")
    assert other.get("/ui/").status_code == 302
    # A code is good once, and this second has but one.
    cache.clear()
    assert other.post(asked["Location"], {"code": code_of(secret)})["Location"] == "/ui/"
    assert AuditRecord.objects.filter(action="platform:person:sign_in", after__by="password, totp").exists()


def test_the_secret_is_sealed_in_the_database(client: Client) -> None:
    secret = activated(client, with_password(make_person()))
    kept = Authenticator.objects.get(type="totp").data
    assert secret not in str(kept)


def test_a_wrong_code_is_told_to_the_audit_log(client: Client) -> None:
    person = with_password(make_person())
    activated(client, person)
    other = Client()
    asked = other.post(LOGIN, {"login": person.email, "password": PASSWORD})
    assert other.post(asked["Location"], {"code": "000000"}).status_code == 200
    assert AuditRecord.objects.filter(action="platform:access:deny", object__id=person.email).exists()


def test_a_recovery_code_lets_in_once(client: Client) -> None:
    person = with_password(make_person())
    activated(client, person)
    codes = Authenticator.objects.get(type="recovery_codes").wrap().get_unused_codes()
    for expected in (302, 200):
        other = Client()
        asked = other.post(LOGIN, {"login": person.email, "password": PASSWORD})
        assert other.post(asked["Location"], {"code": codes[0]}).status_code == expected


def test_other_sessions_are_ended_from_the_list_of_sessions(client: Client) -> None:
    person = with_password(make_person())
    other = Client()
    enter(client, person)
    enter(other, person)
    for browser in (client, other):
        assert browser.get("/ui/account").status_code == 200
    assert client.post("/ui/account/sessions").status_code == 302
    assert client.get("/ui/account").status_code == 200
    assert other.get("/ui/account").status_code == 302


def test_a_person_who_is_not_active_any_more_is_out_at_once(client: Client) -> None:
    person = with_password(make_person())
    enter(client, person)
    Person.objects.filter(pk=person.pk).update(is_active=False)
    assert client.get("/ui/account").status_code == 302
