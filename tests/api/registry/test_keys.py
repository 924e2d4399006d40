from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from registry.api.bodies import read_input
from registry.models import AuditRecord, PipelineSignature, Tenant, Version
from registry.signing.keys import TrustedKeys
from registry.states import Role, VersionState
from tests.factories.keys import make_pipeline_key, pipeline_bundle
from tests.factories.registry import make_tenant, make_version

KEYS = "/api/v1/tenants/acme/pipeline-keys"
POLICY = "/api/v1/tenants/acme/signing-policy"
VERSION = "/api/v1/tenants/acme/adapters/support-tone/versions/v1"
Caller = Callable[..., APIClient]
pytestmark = pytest.mark.django_db


@pytest.fixture
def candidate(push: Callable[..., Version]) -> Version:
    return push(name="v1")


def attach(client: APIClient, bundle: str) -> Any:
    return client.post(f"{VERSION}/pipeline-signatures", {"bundle": bundle}, format="json")


def test_everybody_may_read_the_public_keys_and_a_verifier_takes_them_as_they_are(
    candidate: Version, signer: Any, as_role: Caller
) -> None:
    body = {"digest": candidate.root_digest}
    assert as_role(Role.REVIEWER).post(f"{VERSION}/approve", body, format="json").status_code == 200
    anybody = APIClient()
    answer = anybody.get("/.well-known/lorekeeper/keys.json")
    assert answer.status_code == 200
    assert answer.json() == anybody.get("/api/v1/keys").json()
    (key,) = answer.json()["keys"]
    assert (key["key_id"], key["algorithm"], key["valid_to"], key["revoked_at"]) == (
        signer.key_id,
        "ecdsa-p256-sha256",
        None,
        None,
    )
    assert TrustedKeys.from_text(answer.content.decode()).find(signer.key_id)
    assert (
        anybody.get("/.well-known/lorekeeper/keys.json", headers={"If-None-Match": answer["ETag"]}).status_code == 304
    )


def test_an_admin_registers_a_pipelines_key_and_revokes_it(admin: APIClient, tenant: Tenant, signer: Any) -> None:
    body = {"name": "nightly", "public_key": signer.public_pem()}
    made = admin.post(KEYS, body, format="json")
    assert (made.status_code, made.json()["key_id"]) == (201, signer.key_id)
    assert admin.post(KEYS, body, format="json").json() == made.json()
    url = f"{KEYS}/{signer.key_id}/revoke"
    assert admin.post(url, {"reason": "leaked"}, format="json").json()["revoked_reason"] == "leaked"
    assert admin.post(url, {"reason": "again"}, format="json").json()["revoked_reason"] == "leaked"
    refused = admin.post(KEYS, body, format="json")
    assert (refused.status_code, refused.json()["field"]) == (400, "public_key")
    assert [row["name"] for row in admin.get(KEYS).json()["results"]] == ["nightly"]
    assert admin.get(KEYS, {"active": "true"}).json()["results"] == []
    assert list(AuditRecord.objects.filter(chain="acme").order_by("seq").values_list("action", flat=True)) == [
        "tenant:pipeline_key:register",
        "tenant:pipeline_key:revoke",
    ]


@pytest.mark.parametrize("text", ["noise", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_what_is_no_key_is_not_registered(admin: APIClient, tenant: Tenant, text: str) -> None:
    answer = admin.post(KEYS, {"name": "nightly", "public_key": text}, format="json")
    assert (answer.status_code, answer.json()["field"]) == (400, "public_key")


def test_an_unknown_key_can_not_be_revoked(admin: APIClient, tenant: Tenant) -> None:
    assert admin.post(f"{KEYS}/{'f' * 64}/revoke", {"reason": "x"}, format="json").status_code == 404


def test_a_bundle_by_a_registered_key_is_attached_once(as_role: Caller, candidate: Version) -> None:
    key, pipeline = make_pipeline_key(candidate.adapter.tenant)
    uploader = as_role(Role.UPLOADER)
    first = attach(uploader, pipeline_bundle(pipeline, candidate))
    assert first.status_code == 201, first.json()
    again = attach(uploader, pipeline_bundle(pipeline, candidate))
    assert again.json() == first.json()
    (shown,) = as_role(Role.VIEWER).get(f"{VERSION}/pipeline-signatures").json()["results"]
    assert (shown["key"], shown["key_id"], shown["trusted"]) == (key.name, key.key_id, True)
    assert shown["attached_by"] == candidate.uploader.email
    record = AuditRecord.objects.get(action="adapter:version:attach_signature")
    assert record.after == {"key": key.key_id, "root_digest": candidate.root_digest}


def test_a_bundle_over_other_files_by_other_keys_or_of_no_form_is_refused(
    as_role: Caller, candidate: Version, signer: Any
) -> None:
    _key, pipeline = make_pipeline_key(candidate.adapter.tenant)
    _foreign_key, foreign = make_pipeline_key(make_tenant())
    other_files = pipeline_bundle(pipeline, candidate, without=["adapter_config.json"])
    for bundle in (other_files, pipeline_bundle(foreign, candidate), "{}", pipeline_bundle(signer, candidate)):
        answer = attach(as_role(Role.UPLOADER), bundle)
        assert (answer.status_code, answer.json()["field"]) == (400, "bundle")
    assert not PipelineSignature.objects.exists()


def test_after_the_decision_no_bundle_is_attached(
    as_role: Caller, admin: APIClient, candidate: Version, signer: Any
) -> None:
    _key, pipeline = make_pipeline_key(candidate.adapter.tenant)
    body = {"digest": candidate.root_digest}
    assert as_role(Role.REVIEWER).post(f"{VERSION}/approve", body, format="json").status_code == 200
    answer = attach(as_role(Role.UPLOADER), pipeline_bundle(pipeline, candidate))
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")


def test_a_tenant_that_asks_for_the_pipelines_signature_gets_no_version_without_it(
    as_role: Caller, admin: APIClient, candidate: Version, signer: Any
) -> None:
    assert admin.put(POLICY, {"require_pipeline_signature": True}, format="json").status_code == 200
    _key, pipeline = make_pipeline_key(candidate.adapter.tenant)
    reviewer, body = as_role(Role.REVIEWER), {"digest": candidate.root_digest}
    refused = reviewer.post(f"{VERSION}/approve", body, format="json")
    assert (refused.status_code, refused.json()["code"]) == (409, "pipeline_signature_missing")
    assert attach(as_role(Role.UPLOADER), pipeline_bundle(pipeline, candidate)).status_code == 201
    answer = reviewer.post(f"{VERSION}/approve", body, format="json")
    assert (answer.status_code, answer.json()["state"]) == (200, "approved")


def test_a_bundle_by_a_key_that_was_revoked_since_does_not_count(
    as_role: Caller, admin: APIClient, candidate: Version, signer: Any
) -> None:
    admin.put(POLICY, {"require_pipeline_signature": True}, format="json")
    key, pipeline = make_pipeline_key(candidate.adapter.tenant)
    bundle = pipeline_bundle(pipeline, candidate)
    assert attach(as_role(Role.UPLOADER), bundle).status_code == 201
    admin.post(f"{KEYS}/{key.key_id}/revoke", {"reason": "leaked"}, format="json")
    refused = as_role(Role.REVIEWER).post(f"{VERSION}/approve", {"digest": candidate.root_digest}, format="json")
    assert refused.json()["code"] == "pipeline_signature_missing"
    assert attach(as_role(Role.UPLOADER), bundle).status_code == 400
    (shown,) = as_role(Role.VIEWER).get(f"{VERSION}/pipeline-signatures").json()["results"]
    assert shown["trusted"] is False


def test_the_policy_changes_from_the_state_that_was_seen(admin: APIClient, tenant: Tenant) -> None:
    seen = admin.get(POLICY)
    assert seen.json() == {"require_pipeline_signature": False}
    body = {"require_pipeline_signature": True}
    changed = admin.put(POLICY, body, format="json", headers={"If-Match": seen["ETag"]})
    assert (changed.status_code, changed.json()) == (200, body)
    assert admin.put(POLICY, body, format="json", headers={"If-Match": seen["ETag"]}).status_code == 412
    assert admin.put(POLICY, body, format="json").status_code == 200
    assert AuditRecord.objects.filter(action="tenant:signing_policy:change").count() == 1


def test_a_body_that_says_nothing_is_told_so_before_what_it_is_based_on(admin: APIClient, tenant: Any) -> None:
    answer = admin.put(POLICY, {}, format="json", headers={"If-Match": '"old"'})
    assert (answer.status_code, answer.json()["field"]) == (400, "require_pipeline_signature")


def test_a_signing_policy_changed_in_this_moment_is_not_overwritten(
    admin: APIClient, tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = admin.get(POLICY)["ETag"]

    def read_and_lose_the_race(*args: Any) -> Any:
        monkeypatch.undo()
        assert admin.put(POLICY, {"require_pipeline_signature": True}, format="json").status_code == 200
        return read_input(*args)

    monkeypatch.setattr("registry.api.keys.read_input", read_and_lose_the_race)
    late = admin.put(POLICY, {"require_pipeline_signature": False}, format="json", headers={"If-Match": seen})
    assert late.status_code == 412
    assert admin.get(POLICY).json() == {"require_pipeline_signature": True}


def test_only_an_admin_registers_keys_and_changes_the_policy(as_role: Caller, candidate: Version, signer: Any) -> None:
    client = as_role(*(role for role in Role))
    key = {"name": "mine", "public_key": signer.public_pem()}
    assert client.post(KEYS, key, format="json").status_code == 403
    assert client.post(f"{KEYS}/{'f' * 64}/revoke", {"reason": "x"}, format="json").status_code == 403
    assert client.put(POLICY, {"require_pipeline_signature": True}, format="json").status_code == 403
    assert attach(as_role(Role.REVIEWER), "{}").status_code == 403


def test_keys_of_another_tenant_are_neither_seen_nor_used(as_role: Caller, candidate: Version) -> None:
    other = make_version(state=VersionState.CANDIDATE)
    url = f"/api/v1/tenants/{other.adapter.tenant.name}/pipeline-keys"
    assert as_role(Role.UPLOADER).get(url).status_code == 404
