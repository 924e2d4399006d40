from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from registry.models import AuditRecord, Version
from registry.signing.keys import TrustedKeys
from registry.signing.verify import verify_folder
from registry.states import Role
from tests.factories.adapters import adapter_files

URL = "/api/v1/tenants/acme/adapters/support-tone/versions"
Caller = Callable[..., APIClient]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def candidate(push: Callable[..., Version], signer: object) -> Version:
    version = push(name="v1")
    assert version.state == "candidate", version.state_message
    return version


def approve(client: APIClient, version: Version, digest: str | None = None) -> Any:
    body = {"digest": digest or version.root_digest, "comment": "sounds right"}
    return client.post(f"{URL}/{version.name}/approve", body, format="json")


def test_a_reviewer_approves_and_the_version_is_signed(
    as_role: Caller, candidate: Version, signer: Any, tmp_path: Path
) -> None:
    answer = approve(as_role(Role.REVIEWER), candidate)
    assert answer.status_code == 200, answer.json()
    assert answer.json()["state"] == "approved"
    signature = as_role(Role.VIEWER).get(f"{URL}/v1/signature").json()
    folder = tmp_path / "pulled"
    folder.mkdir()
    for path, content in adapter_files().items():
        (folder / path).write_bytes(content)
    claims = verify_folder(
        folder, signature["bundle"], signature["attestation"], TrustedKeys.from_pem(signer.public_pem())
    )
    assert (claims.tenant, claims.adapter, claims.version) == ("acme", "support-tone", "v1")
    assert claims.approvals[0]["comment"] == "sounds right"


def test_the_uploader_can_not_approve_not_even_with_the_role(as_role: Caller, candidate: Version) -> None:
    uploader = candidate.uploader
    tenant = candidate.adapter.tenant
    tenant.memberships.create(person=uploader, role=Role.REVIEWER.value)
    answer = approve(as_role(Role.UPLOADER), candidate)
    assert answer.status_code == 409
    assert answer.json()["code"] == "self_approval"


def test_approving_names_the_digest_that_was_looked_at(as_role: Caller, candidate: Version) -> None:
    answer = approve(as_role(Role.REVIEWER), candidate, digest="0" * 64)
    assert answer.status_code == 409
    assert answer.json()["code"] == "digest_changed"
    assert not candidate.approvals.exists()


def test_approving_again_changes_nothing(as_role: Caller, candidate: Version) -> None:
    first = approve(as_role(Role.REVIEWER), candidate)
    again = approve(as_role(Role.REVIEWER), candidate)
    assert (first.status_code, again.status_code) == (200, 200)
    assert AuditRecord.objects.filter(action="adapter:version:approve").count() == 1


def test_a_declined_version_stays_refused_with_its_reason(as_role: Caller, candidate: Version) -> None:
    declined = as_role(Role.REVIEWER).post(f"{URL}/v1/decline", {"reason": "too cheerful"}, format="json")
    assert declined.status_code == 200
    assert declined.json()["state"] == "rejected"
    assert declined.json()["state_message"] == "too cheerful"
    assert approve(as_role(Role.REVIEWER, new=True), candidate).json()["code"] == "wrong_state"


def test_yank_then_revoke_each_with_its_reason(as_role: Caller, candidate: Version) -> None:
    approve(as_role(Role.REVIEWER), candidate)
    manager = as_role(Role.RELEASE_MANAGER)
    assert manager.post(f"{URL}/v1/yank", {"reason": "old"}, format="json").json()["state"] == "yanked"
    assert manager.post(f"{URL}/v1/revoke", {"reason": "leak"}, format="json").json()["state"] == "revoked"
    assert manager.post(f"{URL}/v1/revoke", {"reason": "leak"}, format="json").status_code == 200
    assert manager.post(f"{URL}/v1/yank", {"reason": "x"}, format="json").json()["code"] == "wrong_state"
    assert list(
        AuditRecord.objects.filter(action__in=["adapter:version:yank", "adapter:version:revoke"])
        .order_by("seq")
        .values_list("reason", flat=True)
    ) == ["old", "leak"]


def test_the_audit_chain_tells_the_whole_story(as_role: Caller, candidate: Version) -> None:
    approve(as_role(Role.REVIEWER), candidate)
    records = as_role(Role.AUDITOR).get("/api/v1/tenants/acme/audit").json()["results"]
    story = [record["action"] for record in records if record["object"]["kind"] == "version"]
    assert story == [
        "adapter:version:upload",
        "adapter:version:finalize",
        "adapter:version:validate",
        "adapter:version:approve",
    ]
