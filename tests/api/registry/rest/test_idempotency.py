from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from registry.models import Adapter, ApiToken, AuditRecord, IdempotentAnswer, Tenant
from registry.services import idempotency
from registry.states import Role
from tests.api.registry.conftest import Caller

ADAPTERS = "/api/v1/tenants/acme/adapters"


@pytest.fixture
def uploader(as_role: Caller, adapter: Adapter) -> APIClient:
    return as_role(Role.UPLOADER)


@pytest.fixture
def body(adapter: Adapter) -> dict[str, str]:
    return {"name": "new-line", "base_model": adapter.base_model.name}


def send(client: APIClient, body: object, key: str = "k-1", url: str = ADAPTERS) -> Any:
    return client.post(url, body, format="json", headers={"Idempotency-Key": key})


def test_the_same_request_is_done_once_and_answered_twice_alike(uploader: APIClient, body: dict[str, str]) -> None:
    first, again = send(uploader, body), send(uploader, body)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert "Idempotent-Replayed" not in first
    assert again["Idempotent-Replayed"] == "true"
    assert again["Content-Type"] == first["Content-Type"] == "application/json"
    assert Adapter.objects.filter(name="new-line").count() == 1
    assert AuditRecord.objects.filter(object__name="acme/new-line").count() <= 1


def test_without_a_key_or_with_another_it_is_another_request(uploader: APIClient, body: dict[str, str]) -> None:
    assert send(uploader, body).status_code == 201
    assert uploader.post(ADAPTERS, body, format="json").status_code == 409
    assert send(uploader, body, key="k-2").status_code == 409


def test_a_key_that_stood_for_another_request_is_refused(uploader: APIClient, body: dict[str, str]) -> None:
    assert send(uploader, body).status_code == 201
    other = send(uploader, {**body, "name": "other-line"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    elsewhere = send(uploader, body, url=f"{ADAPTERS}/support-tone/versions")
    assert elsewhere.status_code == 422
    assert not Adapter.objects.filter(name="other-line").exists()


def test_a_refusal_is_not_kept(uploader: APIClient, body: dict[str, str]) -> None:
    refused = send(uploader, {**body, "base_model": "missing"})
    assert refused.status_code in {400, 404}
    assert send(uploader, body).status_code == 201


def test_keys_of_two_callers_have_nothing_to_do_with_each_other(
    uploader: APIClient, as_role: Caller, body: dict[str, str]
) -> None:
    assert send(uploader, body).status_code == 201
    assert send(as_role(Role.UPLOADER, new=True), {**body, "name": "second"}).status_code == 201


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 256])
def test_a_key_that_is_no_key_is_refused(uploader: APIClient, body: dict[str, str], key: str) -> None:
    answer = send(uploader, body, key=key)
    assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")


def test_a_new_token_is_told_again_but_is_not_readable_in_the_database(admin: APIClient, tenant: Tenant) -> None:
    url = "/api/v1/tenants/acme/tokens"
    wanted = {"name": "app", "kind": "application", "scopes": ["infer"]}
    first, again = send(admin, wanted, url=url), send(admin, wanted, url=url)
    assert first.json() == again.json()
    assert ApiToken.objects.filter(name="app").count() == 1
    kept = IdempotentAnswer.objects.get()
    assert first.json()["token"].encode() not in bytes(kept.sealed)
    assert b"token" not in bytes(kept.sealed)


def test_a_revoked_token_gets_no_answer_again(
    admin: APIClient, tenant: Tenant, as_role: Caller, adapter: Adapter
) -> None:
    uploader = as_role(Role.UPLOADER)
    body = {"name": "new-line", "base_model": adapter.base_model.name}
    assert send(uploader, body).status_code == 201
    ApiToken.objects.filter(kind="person", tenant=tenant).update(revoked_at=timezone.now())
    assert send(uploader, body).status_code == 401


def test_what_fails_on_our_side_is_undone_with_its_answer_and_may_be_sent_again(
    uploader: APIClient, body: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_facts: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr("registry.api.rest.idempotency.keep_answer", fail)
        assert send(uploader, body).status_code == 500
    assert not Adapter.objects.filter(name="new-line").exists()
    assert send(uploader, body).status_code == 201


def test_after_a_day_a_key_is_free_and_swept(uploader: APIClient, body: dict[str, str]) -> None:
    assert send(uploader, body).status_code == 201
    IdempotentAnswer.objects.update(created_at=timezone.now() - idempotency.KEPT_FOR - timedelta(seconds=1))
    assert send(uploader, {**body, "name": "second"}).status_code == 201
    assert IdempotentAnswer.objects.count() == 1
    assert idempotency.forget_old_answers() == 0
    IdempotentAnswer.objects.update(created_at=timezone.now() - idempotency.KEPT_FOR - timedelta(seconds=1))
    assert idempotency.forget_old_answers() == 1
    assert not IdempotentAnswer.objects.exists()
