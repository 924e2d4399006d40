from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from registry.models import ApiToken, AuditRecord, Membership, Tenant, WebhookEndpoint
from registry.reviews import policy_of
from registry.services.tokens import authenticate_token
from registry.signing.local_key import LocalKeySigner
from registry.states import Role
from tests.factories.keys import make_signers
from tests.factories.registry import make_person, make_tenant
from tests.factories.webhooks import make_webhook
from tests.web.conftest import SignIn, filled, shown

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def acme() -> Tenant:
    return make_tenant(name="acme")


@pytest.fixture
def admin(sign_in: SignIn) -> Client:
    return sign_in(is_platform_admin=True)


@pytest.fixture
def pipeline(tmp_path: Path) -> LocalKeySigner:
    return next(iter(make_signers(tmp_path, "ci").values()))


def test_a_tenant_is_made_and_leads_to_its_members(admin: Client) -> None:
    left = admin.post("/ui/settings/new-tenant", {"name": "globex", "title": "Globex"})
    assert left["Location"] == "/ui/settings/tenants/globex/members"
    assert AuditRecord.objects.get(action="platform:tenant:create").how == "web"


def test_what_a_service_refuses_stands_next_to_its_field(admin: Client, acme: Tenant) -> None:
    page = admin.post("/ui/settings/new-tenant", {"name": "acme"})
    assert page.status_code == 422
    assert page.context["form"].errors["name"] == ["There is already a tenant named acme."]


def test_somebody_gets_a_role_and_loses_it(admin: Client, acme: Tenant) -> None:
    admin.post("/ui/settings/tenants/acme/members/new", {"email": "Eve@x.example", "name": "Eve", "role": "auditor"})
    assert Membership.objects.get(tenant=acme).person.email == "eve@x.example"
    address = "/ui/settings/tenants/acme/members/eve@x.example/auditor/remove"
    asked = admin.get(address).content.decode()
    assert "Take the role “auditor” from eve@x.example?" in asked
    assert Membership.objects.filter(tenant=acme).exists(), "a question changes nothing"
    assert admin.post(address)["Location"] == "/ui/settings/tenants/acme/members"
    assert not Membership.objects.filter(tenant=acme).exists()


def test_a_question_opens_in_a_dialog_where_scripts_run(admin: Client, acme: Tenant) -> None:
    address = "/ui/settings/tenants/acme/members/eve@x.example/auditor/remove"
    inside = admin.get(address, headers={"HX-Request": "true", "HX-Target": "dialog"}).content.decode()
    assert "<html" not in inside
    assert 'id="dialog-heading"' in inside


def test_a_role_that_there_is_not_is_nowhere(admin: Client, acme: Tenant) -> None:
    assert admin.post("/ui/settings/tenants/acme/members/e@x.example/king/remove").status_code == 404


def test_the_token_of_an_application_is_shown_once_and_revoked(admin: Client, acme: Tenant) -> None:
    page = admin.post("/ui/settings/tenants/acme/tokens/new", {"name": "shop", "days": "30"})
    text = str(page.context["text"])
    assert authenticate_token(text=text).kind == "application"
    token = ApiToken.objects.get(name="shop")
    listed = admin.get("/ui/settings/tenants/acme/tokens").content.decode()
    assert token.prefix in listed
    assert text not in listed
    admin.post(f"/ui/settings/tenants/acme/tokens/{token.prefix}/revoke")
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_a_member_makes_a_token_of_their_own_and_revokes_no_other(sign_in: SignIn, acme: Tenant) -> None:
    person = make_person(roles={acme: [Role.REVIEWER]})
    browser = sign_in(person)
    made = browser.post(
        "/ui/tokens/new", {"name": "laptop", "tenant": "acme", "scopes": ["read", "approve"], "days": 7}
    )
    actor = authenticate_token(text=str(made.context["text"]))
    assert (actor.id, sorted(actor.scopes)) == (person.email, ["approve", "read"])
    token = ApiToken.objects.get(name="laptop")
    other = sign_in(roles={acme: [Role.REVIEWER]})
    assert other.post(f"/ui/tokens/{token.prefix}/revoke").status_code == 404
    assert browser.post(f"/ui/tokens/{token.prefix}/revoke").status_code == 302


def test_a_token_is_made_for_a_tenant_of_ones_own_alone(sign_in: SignIn, acme: Tenant) -> None:
    browser = sign_in(roles={make_tenant(): [Role.REVIEWER]})
    page = browser.post("/ui/tokens/new", {"name": "x", "tenant": "acme", "scopes": ["read"], "days": 7})
    assert page.status_code == 422
    assert not ApiToken.objects.exists()


def test_the_approval_policy_is_changed_by_who_manages_and_read_by_the_others(
    admin: Client, sign_in: SignIn, acme: Tenant
) -> None:
    member = sign_in(roles={acme: [Role.REVIEWER]})
    address = "/ui/settings/tenants/acme/approval-policy"
    wanted = {"required": 2, "roles": ["reviewer"], "validity_days": "30"}
    assert '<form class="narrow"' not in member.get(address).content.decode()
    assert member.post(address, wanted).status_code == 403
    assert filled(admin, address, **wanted)["Location"] == address
    assert (policy_of(acme).required, policy_of(acme).validity_days) == (2, 30)


@pytest.mark.parametrize(
    ("page", "first", "second"),
    [
        ("approval-policy", {"required": 2}, {"required": 3}),
        ("webhooks/ci/change", {"url": "https://receiver.example/y"}, {"url": "https://receiver.example/z"}),
    ],
)
def test_what_was_changed_since_a_form_was_shown_is_not_changed_back_by_it(
    page: str, first: dict[str, Any], second: dict[str, Any], admin: Client, acme: Tenant
) -> None:
    make_webhook(tenant=acme, name="ci")
    address = f"/ui/settings/tenants/acme/{page}"
    opened = shown(admin, address)
    for _number in range(2):
        assert admin.post(address, {**opened, **first}).status_code == 302, "a double click says the same twice"
    late = admin.post(address, {**opened, **second})
    assert late.status_code == 422
    assert "was changed meanwhile" in late.content.decode()
    name, value = next(iter(first.items()))
    assert shown(admin, address)[name] == value
    assert admin.post(address, {**opened, **second, "seen": "forged"}).status_code == 422


def test_a_double_click_does_not_take_the_demand_for_signatures_back(admin: Client, acme: Tenant) -> None:
    address = "/ui/settings/tenants/acme/signing-policy"
    opened = shown(admin, address)
    for _number in range(2):
        assert admin.post(address, opened).status_code == 302
        acme.refresh_from_db()
        assert acme.require_pipeline_signature
    assert admin.post(address, {}).status_code == 422


def test_a_pipelines_key_is_registered_and_asked_for(admin: Client, acme: Tenant, pipeline: LocalKeySigner) -> None:
    base = "/ui/settings/tenants/acme"
    assert admin.post(f"{base}/pipeline-keys/new", {"name": "ci", "public_key": "PEM"}).status_code == 422
    admin.post(f"{base}/pipeline-keys/new", {"name": "ci", "public_key": pipeline.public_pem()})
    assert filled(admin, f"{base}/signing-policy").status_code == 302
    acme.refresh_from_db()
    assert acme.require_pipeline_signature
    key = acme.pipeline_keys.get()
    admin.post(f"{base}/pipeline-keys/{key.key_id}/revoke", {"reason": "lost"})
    key.refresh_from_db()
    assert key.revoked_reason == "lost"


@pytest.mark.parametrize("base", ["/ui/settings/tenants/acme/webhooks", "/ui/settings/webhooks"])
def test_a_webhook_lives_from_the_pages(base: str, admin: Client, acme: Tenant) -> None:
    made = admin.post(f"{base}/new", {"name": "ci", "url": "https://receiver.example/x", "kinds": ["version.*"]})
    assert str(made.context["text"]).startswith("whsec_")
    assert admin.post(f"{base}/ci/ping").status_code == 302
    assert "ping" in admin.get(f"{base}/ci").content.decode()
    sent = WebhookEndpoint.objects.get().deliveries.get()
    assert admin.post(f"{base}/ci/deliveries/{sent.pk}/redeliver").status_code == 302
    filled(admin, f"{base}/ci/change", url="https://receiver.example/y", kinds=["release.*"])
    admin.post(f"{base}/ci/disable", {"reason": "moved"})
    changed = WebhookEndpoint.objects.get()
    assert (changed.url, changed.kinds, changed.disabled_reason) == (
        "https://receiver.example/y",
        ["release.*"],
        "moved",
    )
    admin.post(f"{base}/ci/enable", {"skip_missed": "on"})
    assert "whsec_" in str(admin.post(f"{base}/ci/rotate-secret", {"hours": 1}).context["text"])
    admin.post(f"{base}/ci/remove")
    assert not WebhookEndpoint.objects.exists()


def test_a_webhook_of_another_tenant_is_nowhere(sign_in: SignIn, acme: Tenant, admin: Client) -> None:
    make_webhook(tenant=make_tenant(name="globex"), name="theirs")
    assert admin.get("/ui/settings/tenants/acme/webhooks/theirs").status_code == 404
    assert sign_in(roles={acme: list(Role)}).get("/ui/settings/tenants/globex/webhooks").status_code == 404


def test_an_admin_makes_a_link_for_a_person_by_page_and_by_api(admin: Client, client: Client, settings: Any) -> None:
    person = make_person()
    page = admin.post(f"/ui/settings/people/{person.email}/password-link")
    path = str(page.context["address"]).removeprefix("http://testserver")
    assert client.get(path).status_code == 200
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "https://lore.example", ["*"]
    elsewhere = admin.post(f"/ui/settings/people/{person.email}/password-link", headers={"Host": "evil.example"})
    assert str(elsewhere.context["address"]).startswith("https://lore.example/ui/password/")
    told = AuditRecord.objects.filter(action="platform:person:make_password_link")
    assert [each.object["name"] for each in told] == [person.email, person.email]


def test_a_denied_page_is_told_to_the_audit_log(sign_in: SignIn, acme: Tenant) -> None:
    refused = sign_in(roles={acme: [Role.VIEWER]}).get("/ui/settings/tenants/acme/tokens")
    assert refused.status_code == 403
    assert "Your role does not allow this" in refused.content.decode()
    told = AuditRecord.objects.get(chain="acme", action="tenant:access:deny")
    assert (told.how, told.object["id"]) == ("web", "GET /ui/settings/tenants/acme/tokens")


def test_an_admin_of_more_tenants_than_are_offered_gets_to_the_others(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.web.reader.MOST_TENANTS", 2)
    tenants = [make_tenant(name=f"t{number}") for number in range(5)]
    browser = sign_in(make_person(roles={tenants[4]: [Role.REVIEWER]}, is_platform_admin=True))
    assert '<a href="/ui/settings/tenants">All tenants</a>' in browser.get("/ui/").content.decode()
    assert browser.get("/ui/settings/tenants/t3/members").status_code == 200
    reader = browser.get("/ui/").context["reader"]
    assert [each.name for each in reader.tenants] == ["t0", "t1", "t3", "t4"]
    assert reader.tenant == tenants[3], "what was looked at stays the one that pages lead to"
    made = {"name": "laptop", "tenant": "t4", "scopes": ["read"], "days": 7}
    assert browser.post("/ui/tokens/new", made).status_code == 200


def test_a_long_list_is_walked_there_and_back(admin: Client) -> None:
    for number in range(120):
        make_tenant(name=f"t{number:03}")
    first = admin.get("/ui/settings/tenants")
    assert first.context["rows"].rows[0].name == "t000"
    second = admin.get(first.context["rows"].following)
    third = admin.get(second.context["rows"].following)
    assert third.context["rows"].rows[-1].name == "t119"
    assert third.context["rows"].following == ""
    back = admin.get(third.context["rows"].previous)
    assert [each.name for each in back.context["rows"]] == [each.name for each in second.context["rows"]]
    assert admin.get(back.context["rows"].previous).context["rows"].previous == ""
    assert admin.get("/ui/settings/tenants?after=forged").status_code == 400


def test_the_navigation_shows_the_parts_and_where_one_is(admin: Client) -> None:
    page = admin.get("/ui/settings/tenants").content.decode()
    assert '<a href="/ui/settings" aria-current="page">Settings</a>' in " ".join(page.split())


def test_the_chosen_tenant_stays_chosen(sign_in: SignIn, acme: Tenant) -> None:
    browser = sign_in(roles={acme: [Role.VIEWER], make_tenant(name="zeta"): [Role.VIEWER]})
    assert browser.get("/ui/").context["reader"].tenant.name == "acme"
    browser.post("/ui/tenant", {"tenant": "zeta"})
    assert browser.get("/ui/").context["reader"].tenant.name == "zeta"
    assert browser.post("/ui/tenant", {"tenant": "globex"}).status_code == 404
