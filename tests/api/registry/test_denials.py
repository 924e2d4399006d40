"""What the audit log is told of callers: denied attempts and log-ins, bounded."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone
from rest_framework.test import APIClient

from registry.actors import system_actor
from registry.audit import append_record
from registry.models import AuditNotice, AuditRecord, Tenant, Version
from registry.services.audit import denials
from registry.services.audit.denials import tell_notices
from registry.services.tenants import add_member
from registry.services.tokens import create_tenant_token, revoke_token
from registry.states import Role, Scope, TokenKind
from tests.api.registry.conftest import Caller, client_with
from tests.factories.registry import make_person, make_tenant

SYSTEM = system_actor("test")
MEMBERS = "/api/v1/tenants/acme/members"
BODY = {"email": "eve@example.com", "role": "viewer"}


@pytest.fixture(autouse=True)
def _forget_log_ins() -> None:
    denials._known.clear()


def denied(chain: str = "acme") -> list[AuditRecord]:
    return list(AuditRecord.objects.filter(chain=chain, action__endswith=":access:deny").order_by("seq"))


def attempts() -> list[int]:
    """How many attempts each record of acme's log tells of."""
    found = AuditRecord.objects.filter(chain="acme", action="tenant:access:deny").order_by("seq")
    return list(found.values_list("after__attempts", flat=True))


def log_ins(chain: str = "acme") -> list[AuditRecord]:
    return list(AuditRecord.objects.filter(chain=chain, action__endswith=":token:log_in").order_by("seq"))


def token_of(tenant: Tenant, *, person: Any = None, name: str = "test") -> Any:
    person = person or make_person(roles={tenant: [Role.VIEWER]})
    return create_tenant_token(
        actor=SYSTEM,
        tenant=tenant,
        name=name,
        kind=TokenKind.PERSON,
        scopes=[Scope.READ, Scope.ADMIN],
        person_email=person.email,
    )


@pytest.mark.django_db
def test_a_denied_attempt_is_told_with_who_what_why_and_from_where(as_role: Caller) -> None:
    answer = as_role(Role.VIEWER).post(MEMBERS, BODY, format="json", HTTP_X_REQUEST_ID="r-1", REMOTE_ADDR="10.1.2.3")
    assert answer.status_code == 403
    (record,) = denied()
    assert record.actor["kind"] == "person"
    assert record.actor["token"]
    assert record.object == {"kind": "request", "id": f"POST {MEMBERS}", "name": "permission_denied"}
    assert (record.request_id, record.source, record.how) == ("r-1", "10.1.2.3", "api")
    assert record.reason == answer.json()["detail"]
    assert attempts() == [1]


@pytest.mark.django_db
def test_equal_attempts_are_one_record_and_at_the_end_one_more_with_their_number(as_role: Caller) -> None:
    for _ in range(5):
        as_role(Role.VIEWER).post(MEMBERS, BODY, format="json")
    assert attempts() == [1]
    tell_notices()
    assert len(denied()) == 1
    with connection.cursor() as cursor:
        cursor.execute("UPDATE registry_auditnotice SET ends_at = now()")
    tell_notices()
    assert attempts() == [1, 4]
    assert not AuditNotice.objects.filter(facts__request__kind="request").exists()


@pytest.mark.django_db
def test_another_attempt_of_the_same_person_is_told_apart(as_role: Caller) -> None:
    as_role(Role.VIEWER).post(MEMBERS, BODY, format="json")
    as_role(Role.VIEWER).get("/api/v1/tenants/acme/audit")
    assert [record.object["id"].split("/")[-1] for record in denied()] == ["members", "audit"]


@pytest.mark.django_db
def test_approving_what_one_has_uploaded_is_a_denied_attempt(as_role: Caller, push: Any) -> None:
    version: Version = push()
    client = as_role(Role.UPLOADER)
    url = f"/api/v1/tenants/acme/adapters/support-tone/versions/{version.name}/approve"
    body = {"digest": version.root_digest, "comment": "mine"}
    assert client.post(url, body, format="json").json()["code"] == "permission_denied"
    add_member(actor=SYSTEM, tenant=version.adapter.tenant, email=version.uploader.email, role=Role.REVIEWER)
    assert client.post(url, body, format="json").json()["code"] == "self_approval"
    assert [record.object["name"] for record in denied()] == ["permission_denied", "self_approval"]


@pytest.mark.django_db
def test_what_outsiders_try_is_told_to_the_platform_alone_whether_the_tenant_exists_or_not(as_role: Caller) -> None:
    make_tenant(name="globex")
    for name in ("globex", "nowhere"):
        assert as_role(Role.VIEWER).get(f"/api/v1/tenants/{name}/members").status_code == 404
    assert denied("globex") == []
    (record,) = denied("platform")
    assert record.object["id"].endswith("/tenants/globex/members")
    assert AuditNotice.objects.get(chain="platform", facts__actor__kind="person").count == 2


@pytest.mark.django_db
def test_a_thing_that_is_not_there_is_no_denied_attempt(as_role: Caller) -> None:
    assert as_role(Role.VIEWER).get("/api/v1/tenants/acme/adapters/nothing").status_code == 404
    assert denied() == denied("platform") == []


@pytest.mark.django_db
def test_a_token_that_counts_no_more_is_told_to_its_owner_and_an_unknown_one_to_the_platform(tenant: Tenant) -> None:
    made = token_of(tenant)
    revoke_token(actor=SYSTEM, tenant=tenant, prefix=made.token.prefix)
    assert client_with(made.text).get(MEMBERS).status_code == 401
    forged = made.text[:-1] + ("a" if made.text[-1] != "a" else "b")
    assert client_with(forged).get(MEMBERS).status_code == 401
    assert client_with("nonsense").get(MEMBERS).status_code == 401
    (owner,) = denied()
    assert (owner.actor["kind"], owner.actor["token"]) == ("anonymous", made.token.prefix)
    (unknown,) = denied("platform")
    assert (unknown.actor["id"], unknown.actor["token"]) == (made.token.prefix, "")


@pytest.mark.django_db
def test_asking_without_a_token_is_told_to_nobody(tenant: Tenant) -> None:
    assert APIClient().get(MEMBERS).status_code == 401
    assert denied("platform") == []


@pytest.mark.django_db
def test_callers_without_an_account_can_not_flood_the_log(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denials, "MAX_SOURCES", 3)
    for number in range(8):
        client_with("nonsense").get(MEMBERS, REMOTE_ADDR=f"10.0.0.{number}")
    assert len(denied("platform")) == 4
    others = AuditNotice.objects.get(key="anonymous:others")
    assert others.count == 5


@pytest.mark.django_db
def test_a_log_in_is_told_once_for_each_address(tenant: Tenant) -> None:
    made = token_of(tenant, name="laptop")
    for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2"):
        client_with(made.text).get(MEMBERS, REMOTE_ADDR=address)
        denials._known.clear()
    assert [(record.source, record.object["name"]) for record in log_ins()] == [
        ("10.0.0.1", "laptop"),
        ("10.0.0.2", "laptop"),
    ]


@pytest.mark.django_db
def test_a_token_that_comes_back_after_a_day_logs_in_again(tenant: Tenant) -> None:
    made = token_of(tenant)
    client_with(made.text).get(MEMBERS)
    denials._known.clear()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE registry_auditnotice SET ends_at = %s", [timezone.now() - timedelta(seconds=1)])
    client_with(made.text).get(MEMBERS)
    assert len(log_ins()) == 2


@pytest.mark.django_db
def test_one_token_from_many_addresses_can_not_flood_the_log(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denials, "MAX_SOURCES", 3)
    made = token_of(tenant)
    for number in range(8):
        client_with(made.text).get(MEMBERS, REMOTE_ADDR=f"10.0.0.{number}")
    assert len(log_ins()) == 4


@pytest.mark.django_db
def test_a_log_in_that_is_over_is_forgotten_without_another_word(tenant: Tenant) -> None:
    client_with(token_of(tenant).text).get(MEMBERS)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE registry_auditnotice SET ends_at = now()")
    tell_notices()
    assert len(log_ins()) == 1
    assert not AuditNotice.objects.exists()


@pytest.mark.django_db
def test_an_attempt_that_comes_while_its_record_is_being_closed_is_told_anew(
    as_role: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = as_role(Role.VIEWER)
    client.post(MEMBERS, BODY, format="json")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE registry_auditnotice SET ends_at = now()")
    find = AuditNotice.objects.get_or_create

    def find_and_lose_the_race(*args: Any, **kwargs: Any) -> Any:
        found = find(*args, **kwargs)
        monkeypatch.undo()
        tell_notices()
        return found

    monkeypatch.setattr(AuditNotice.objects, "get_or_create", find_and_lose_the_race)
    client.post(MEMBERS, BODY, format="json")
    assert attempts() == [1, 1]


@pytest.mark.django_db
def test_a_notice_that_can_not_be_told_does_not_hold_up_the_others(
    as_role: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_tenant(name="globex")
    first = AuditNotice.objects.create(
        chain="globex", key="k", facts={}, began_at=timezone.now(), last_at=timezone.now(), ends_at=timezone.now()
    )
    tell = denials._tell

    def tell_all_but_the_first(pk: int, *, now: Any) -> None:
        if pk == first.pk:
            raise OperationalError("lock timeout")
        tell(pk, now=now)

    with monkeypatch.context() as patch:
        patch.setattr(denials, "_tell", lambda pk, *, now: None)
        as_role(Role.VIEWER).post(MEMBERS, BODY, format="json")
    monkeypatch.setattr(denials, "_tell", tell_all_but_the_first)
    assert tell_notices() == 1
    assert attempts() == [1]
    assert "next sweep" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_busy_chain_holds_up_nobody_and_the_sweep_tells_it_later(as_role: Caller) -> None:
    client = as_role(Role.VIEWER)
    client.get(MEMBERS)
    held, done, to_the_end = threading.Event(), threading.Event(), list[bool]()

    def hold() -> None:
        with transaction.atomic():
            append_record(actor=SYSTEM, chain="acme", action="a:b:c", object_={})
            held.set()
            to_the_end.append(done.wait(timeout=30))
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(timeout=10)
        assert client.post(MEMBERS, BODY, format="json").status_code == 403
    finally:
        done.set()
        holder.join()
    assert to_the_end == [True]
    assert denied() == []
    tell_notices()
    assert attempts() == [1]


@pytest.mark.django_db(transaction=True)
def test_a_denied_attempt_inside_a_request_that_is_rolled_back_is_told(as_role: Caller) -> None:
    client = as_role(Role.VIEWER)
    answer = client.post(MEMBERS, BODY, format="json", HTTP_IDEMPOTENCY_KEY="once")
    assert answer.status_code == 403
    assert len(denied()) == 1


@pytest.mark.django_db
def test_what_is_denied_at_the_hubs_addresses_is_told_too_and_says_so(as_role: Caller) -> None:
    client = as_role(Role.VIEWER)
    assert client.post("/api/repos/create", {"name": "acme/tone", "type": "model"}, format="json").status_code == 403
    assert client_with("nonsense").get("/api/whoami-v2").status_code == 401
    ((member,), (stranger,)) = denied(), denied("platform")
    assert (member.how, stranger.how) == ("hub", "hub")
