"""Sign-in at a provider of identities that speaks the real protocol, and what its groups give."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from django.test import Client

from registry.models import AuditRecord, Membership, Person, Tenant
from registry.states import Role
from tests.factories.registry import make_person, make_tenant
from tests.fakes.identity_provider import CLIENT_ID, CLIENT_SECRET, Provider, serving
from tests.web.conftest import PASSWORD, with_password

pytestmark = pytest.mark.django_db
LOGIN = "/ui/account/login"
AT_PROVIDER = "/ui/account/sso/oidc/login/"
ROLES = {"reviewers": ["acme/reviewer"], "ops": ["acme/operator", "acme/viewer"], "admins": ["platform/admin"]}
EVE = {"sub": "42", "email": "Eve@Acme.Example", "email_verified": True, "name": "Eve Ng", "groups": ["reviewers"]}


@pytest.fixture
def acme() -> Tenant:
    return make_tenant(name="acme")


@pytest.fixture
def provider(settings: Any, acme: Tenant) -> Iterator[Provider]:
    with serving() as started:
        settings.OIDC = {**settings.OIDC, "issuer": started.issuer, "roles": json.dumps(ROLES)}
        settings.SOCIALACCOUNT_PROVIDERS = {
            "openid_connect": {
                "OAUTH_PKCE_ENABLED": True,
                "APPS": [
                    {
                        "provider_id": "oidc",
                        "name": "Acme",
                        "client_id": CLIENT_ID,
                        "secret": CLIENT_SECRET,
                        "settings": {"server_url": started.issuer},
                    }
                ],
            }
        }
        yield started


def leave(browser: Client) -> httpx.Response:
    """From our form to the provider: its answer."""
    leaving = browser.post(AT_PROVIDER)
    assert leaving.status_code == 302
    return httpx.get(leaving["Location"])


def come(browser: Client, provider: Provider, person: dict[str, Any]) -> Any:
    """The whole way: from our form to the provider and back."""
    provider.person = person
    address = urlsplit(leave(browser).headers["Location"])
    return browser.get(f"{address.path}?{address.query}")


def roles_of(email: str) -> set[str]:
    return set(Membership.objects.filter(person__email=email).values_list("role", flat=True))


def test_somebody_new_is_made_a_person_with_the_roles_that_the_groups_give(client: Client, provider: Provider) -> None:
    assert come(client, provider, EVE)["Location"] == "/ui/"
    eve = Person.objects.get(email="eve@acme.example")
    assert (eve.name, eve.has_usable_password(), roles_of(eve.email)) == ("Eve Ng", False, {"reviewer"})
    assert client.get("/ui/").status_code == 200
    added = AuditRecord.objects.get(chain="acme", action="tenant:member:add")
    assert (added.actor["id"], added.after, added.how) == ("single sign-on", {"role": "reviewer"}, "web")
    assert AuditRecord.objects.filter(action="platform:person:sign_in", after__by="socialaccount").exists()


def test_at_the_next_sign_in_the_groups_take_and_give(client: Client, provider: Provider, acme: Tenant) -> None:
    come(client, provider, EVE)
    eve = Person.objects.get(email="eve@acme.example")
    Membership.objects.create(person=eve, tenant=acme, role=Role.AUDITOR.value)
    come(Client(), provider, {**EVE, "groups": ["ops", "admins", "unknown"]})
    # What no group gives is none of the provider's business.
    assert roles_of(eve.email) == {"operator", "viewer", "auditor"}
    assert Person.objects.get(pk=eve.pk).is_platform_admin
    come(Client(), provider, {**EVE, "groups": []})
    assert roles_of(eve.email) == {"auditor"}
    assert not Person.objects.get(pk=eve.pk).is_platform_admin
    told = AuditRecord.objects.filter(action__startswith="platform:admin:").order_by("seq")
    assert [each.action for each in told] == ["platform:admin:make", "platform:admin:unmake"]


def test_somebody_without_a_group_that_gives_anything_is_refused_and_told_of(
    client: Client, provider: Provider
) -> None:
    refused = come(client, provider, {**EVE, "groups": ["cooks"]})
    assert refused.status_code == 403
    assert "None of your groups" in refused.content.decode()
    assert not Person.objects.filter(email="eve@acme.example").exists()
    assert AuditRecord.objects.filter(action="platform:access:deny", object__kind="sign_in").exists()


def test_an_address_that_is_not_verified_is_nobodys(client: Client, provider: Provider) -> None:
    make_person(email="eve@acme.example")
    refused = come(client, provider, {**EVE, "email_verified": False})
    assert refused.status_code == 403
    assert client.get("/ui/").status_code == 302


def test_somebody_known_keeps_the_account_and_the_password(client: Client, provider: Provider) -> None:
    person = with_password(make_person(email="eve@acme.example"))
    elsewhere = Client()
    elsewhere.post(LOGIN, {"login": person.email, "password": PASSWORD})
    assert come(client, provider, EVE).status_code == 302
    assert Person.objects.get(email="eve@acme.example").pk == person.pk
    assert elsewhere.get("/ui/").status_code == 200, "nor are they signed out anywhere"
    assert Client().post(LOGIN, {"login": person.email, "password": PASSWORD})["Location"] == "/ui/"


def test_that_an_identity_stands_for_somebody_is_told_once(client: Client, provider: Provider) -> None:
    eve = make_person(email="eve@acme.example")
    for _time in range(2):
        come(Client(), provider, EVE)
    told = AuditRecord.objects.get(action="platform:person:link_identity")
    assert (told.actor["id"], told.object["id"], told.after) == ("single sign-on", str(eve.pk), {"subject": "42"})
    come(client, provider, {**EVE, "sub": "43"})
    assert AuditRecord.objects.filter(action="platform:person:link_identity").count() == 1


def test_another_address_at_the_provider_is_still_the_same_person(client: Client, provider: Provider) -> None:
    come(client, provider, EVE)
    come(Client(), provider, {**EVE, "email": "eve.ng@acme.example"})
    assert list(Person.objects.values_list("email", flat=True)) == ["eve@acme.example"]


def test_another_identity_with_the_same_address_gets_nobodys_account(client: Client, provider: Provider) -> None:
    come(client, provider, EVE)
    refused = come(other := Client(), provider, {**EVE, "sub": "43", "groups": ["ops", "admins"]})
    assert refused.status_code == 403
    assert "has the account with your e-mail address" in refused.content.decode()
    assert other.get("/ui/").status_code == 302
    assert roles_of("eve@acme.example") == {"reviewer"}, "nor do the other's groups count"
    assert AuditRecord.objects.filter(action="platform:access:deny", object__kind="sign_in").exists()
    assert come(Client(), provider, EVE)["Location"] == "/ui/"


@pytest.mark.parametrize("is_back", [False, True])
def test_a_provider_that_does_not_answer_is_said_to_be_away(
    is_back: bool, client: Client, provider: Provider, settings: Any
) -> None:
    back = urlsplit(leave(client).headers["Location"]) if is_back else None
    # Nobody listens there.
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"]["server_url"] = "http://127.0.0.1:1"
    answer = client.get(f"{back.path}?{back.query}") if back else client.post(AT_PROVIDER)
    assert answer.status_code == 503
    assert "Your provider of identities does not answer." in answer.content.decode()


def test_the_way_there_is_a_form_and_no_link(client: Client, provider: Provider) -> None:
    page = client.get(LOGIN).content.decode()
    assert 'action="/ui/account/sso/oidc/login/' in page
    assert client.get("/ui/account/sso/oidc/login/").status_code == 200
