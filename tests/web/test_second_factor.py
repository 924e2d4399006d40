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


def told_of(person: Person) -> list[tuple[str, str]]:
    records = AuditRecord.objects.filter(chain="platform", object__id=str(person.pk), how="web").order_by("seq")
    factors = records.filter(action__endswith="_factor")
    return [(each.action.rpartition(":")[2], (each.after or each.before or {})["factor"]) for each in factors]


def test_second_factors_that_come_and_go_are_told_to_the_audit_log(client: Client) -> None:
    person = with_password(make_person())
    activated(client, person)
    assert told_of(person) == [("add_factor", "totp"), ("add_factor", "recovery_codes")]
    client.post("/ui/account/second-factor/recovery-codes/generate/")
    assert told_of(person)[2:] == [("remove_factor", "recovery_codes"), ("add_factor", "recovery_codes")]
    assert AuditRecord.objects.filter(action="platform:person:add_factor", actor__id=person.email).count() == 3


def test_a_second_factor_and_a_passkey_are_removed_after_the_password_was_asked_for_again(client: Client) -> None:
    person = with_password(make_person())
    activated(client, person)
    data = {"name": "laptop", "credential": {"clientExtensionResults": {"credProps": {"rk": True}}}}
    key = Authenticator.objects.create(user=person, type="webauthn", data=data)
    away = [f"/ui/account/second-factor/webauthn/keys/{key.pk}/remove/", "/ui/account/second-factor/totp/deactivate/"]
    fresh = Client()
    fresh.force_login(person, backend="allauth.account.auth_backends.AuthenticationBackend")
    for address in away:
        assert "reauthenticate" in fresh.post(address)["Location"]
    assert Authenticator.objects.filter(user=person).count() == 3
    index = client.get("/ui/account/second-factor/").content.decode()
    assert away[1] in index
    assert away[0] in client.get("/ui/account/second-factor/webauthn/").content.decode()
    for address in away:
        assert client.get(address).status_code == 200
        assert client.post(address).status_code == 302
    assert not Authenticator.objects.filter(user=person).exists(), "recovery codes of nothing go with it"
    assert [each for each in told_of(person) if each[0] == "remove_factor"] == [
        ("remove_factor", "webauthn"),
        ("remove_factor", "totp"),
        ("remove_factor", "recovery_codes"),
    ]


def test_a_change_of_the_password_is_told_to_the_audit_log(client: Client) -> None:
    person = with_password(make_person())
    enter(client, person)
    another = "another horse battery staple"
    changed = {"oldpassword": PASSWORD, "password1": another, "password2": another}
    assert client.post("/ui/account/password/change", changed).status_code == 302
    told = AuditRecord.objects.get(action="platform:person:change_password")
    assert (told.actor["id"], told.object["id"], told.how) == (person.email, str(person.pk), "web")


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
