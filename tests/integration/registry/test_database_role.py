"""Web and workers run as a role that owns nothing: everything the registry does has to work with its grants alone."""

import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from deploy.embedded.postgres import APP
from registry.actors import system_actor
from registry.models import Adapter, AuditCheckpoint, AuditNotice, HubFile, Version
from registry.naming import object_key
from registry.permissions import Action
from registry.reports import ProbeReference, StoredReport
from registry.selectors import get_tenant, probe_reference
from registry.services.adapters import create_adapter
from registry.services.approvals import approve_version, decline_version
from registry.services.audit.denials import note_denial, tell_notices
from registry.services.audit.exports import export_audit
from registry.services.base_models import register_base_revision
from registry.services.bootstrap import bootstrap_platform
from registry.services.evaluations import keep_evaluation_set, remove_evaluation_set, set_evaluation_gates
from registry.services.hub.drafts import create_branch, create_repo, delete_branch
from registry.services.hub.expiry import drop_commit, expire_draft, stale_drafts, superseded_commits
from registry.services.hub.repos import find_repo
from registry.services.hub.versions import cut_version
from registry.services.idempotency import find_answer, forget_old_answers, keep_answer, only_request_with
from registry.services.keys import revoke_signing_key, rotate_signing_key
from registry.services.pipeline_signatures import (
    attach_pipeline_signature,
    change_signing_policy,
    revoke_pipeline_key,
)
from registry.services.resigning import resign_version
from registry.services.retention import apply_retention, plan_retention, set_retention, sweep_retention
from registry.services.review.comments import write_comment
from registry.services.review.policies import set_approval_policy
from registry.services.stores import artifact_store
from registry.services.tenants import add_member, create_tenant, remove_member
from registry.services.tokens import authenticate_token, create_tenant_token, revoke_token
from registry.services.transfers.parts import abandoned_uploads_in_parts, abort_upload_in_parts, start_parts
from registry.services.uploads import finalize_upload, start_upload
from registry.services.validation import (
    begin_evaluation,
    end_evaluation,
    expire_upload,
    purge_version,
    record_revalidation,
    record_validation,
    request_revalidation,
    say_revalidation_runs,
    send_revalidation_again,
    send_validation_again,
)
from registry.services.withdrawals import revoke_version, yank_version
from registry.signing.manifest import SignedFile
from registry.states import Role, Scope, TokenKind, VersionState
from tests.factories.adapters import BASE_NAME, adapter_files, manifest_of, tiny_description
from tests.factories.hub import push_files
from tests.factories.keys import make_pipeline_key, make_signers, pipeline_bundle
from tests.factories.registry import make_member, make_tenant
from workers.jobs.audit import keep_audit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent", "store", "signer")]
SYSTEM = system_actor("test")


@pytest.fixture
def as_application(postgres: Any, db: None) -> Iterator[None]:
    """Django's connection belongs to the application's role while the test runs."""
    owner = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    connection.close()
    connection.settings_dict.update(USER=APP, PASSWORD=postgres.passwords.of(APP))
    yield
    connection.close()
    connection.settings_dict.update(owner)


def test_the_applications_role_may_do_all_that_the_registry_does(as_application: None, tmp_path: Path) -> None:
    bootstrap_platform(admin_email="root@example.com", data_file=tmp_path / "tokens.json")
    tenant = create_tenant(actor=SYSTEM, name="acme")
    email = add_member(actor=SYSTEM, tenant=tenant, email="ana@example.com", role=Role.VIEWER).person.email
    token = create_tenant_token(
        actor=SYSTEM,
        tenant=tenant,
        name="t",
        kind=TokenKind.PERSON,
        scopes=[Scope.READ],
        person_email=email,
    )
    actor = authenticate_token(text=token.text)
    assert get_tenant(actor=actor, name="acme", action=Action.VIEW_TENANT) == tenant
    revoke_token(actor=SYSTEM, tenant=tenant, prefix=token.token.prefix)
    remove_member(actor=SYSTEM, tenant=tenant, email=email, role=Role.VIEWER)
    register_base_revision(actor=SYSTEM, name=BASE_NAME, label="r1", description=tiny_description(), max_rank=16)
    adapter = create_adapter(actor=SYSTEM, tenant=tenant, name="support-tone", base_model=BASE_NAME)
    live_and_die(adapter)


def test_the_applications_role_may_do_all_that_keys_need(
    as_application: None, settings: Any, signer: Any, tmp_path: Path
) -> None:
    tenant = make_tenant()
    register_base_revision(actor=SYSTEM, name=BASE_NAME, label="r1", description=tiny_description(), max_rank=16)
    adapter = create_adapter(actor=SYSTEM, tenant=tenant, name="support-tone", base_model=BASE_NAME)
    pipeline_key, pipeline = make_pipeline_key(tenant)
    change_signing_policy(actor=SYSTEM, tenant=tenant, require_pipeline_signature=True)
    version = candidate(adapter, seed=1)
    attach_pipeline_signature(actor=SYSTEM, version=version, bundle=pipeline_bundle(pipeline, version))
    approve_version(actor=make_member(tenant, Role.REVIEWER), version=version, digest=version.root_digest)
    settings.SIGNING_KEYS = [*settings.SIGNING_KEYS, *make_signers(tmp_path, "new.pem")]
    rotate_signing_key(actor=SYSTEM)
    revoke_signing_key(actor=SYSTEM, key_id=signer.key_id, reason="stolen")
    assert resign_version(actor=SYSTEM, version_id=version.pk).key.key_id != signer.key_id
    revoke_pipeline_key(actor=SYSTEM, tenant=tenant, key_id=pipeline_key.key_id, reason="stolen")


def test_the_applications_role_may_do_all_that_evaluations_need(as_application: None) -> None:
    register_base_revision(actor=SYSTEM, name=BASE_NAME, label="r1", description=tiny_description(), max_rank=16)
    adapter = create_adapter(actor=SYSTEM, tenant=make_tenant(), name="support-tone", base_model=BASE_NAME)
    tenant = adapter.tenant
    for prompt in ("a", "b"):
        keep_evaluation_set(actor=SYSTEM, tenant=tenant, name="smoke", examples=[{"prompt": prompt}])
        set_evaluation_gates(actor=SYSTEM, tenant=tenant, gates={"max_mean_kl": len(prompt) / 2 + ord(prompt)})
    remove_evaluation_set(actor=SYSTEM, tenant=tenant, name="smoke")
    version = candidate(adapter, seed=1)
    assert begin_evaluation(version_id=version.pk) == 1
    end_evaluation(version_id=version.pk)
    asked = request_revalidation(actor=SYSTEM, version=version)
    say_revalidation_runs(revalidation_id=asked.pk)
    send_revalidation_again(revalidation_id=asked.pk)
    reference = ProbeReference("a text", base=(-1.0,), adapter=(-2.0,))
    report = StoredReport("accept", "2", "", {}, "1" * 64, 4, ("q_proj",), reference)
    assert record_revalidation(actor=SYSTEM, revalidation_id=asked.pk, report=report).validation_digest == "1" * 64
    assert probe_reference(version_id=version.pk) == reference


def test_the_applications_role_may_do_all_that_the_audit_log_needs(as_application: None) -> None:
    auditor = make_member(make_tenant(name="acme"), Role.AUDITOR)
    request = {"kind": "request", "id": "GET /", "name": "permission_denied"}
    for _attempt in range(2):
        note_denial(actor=auditor, chain="acme", group=("a",), request=request, reason="no")
    AuditNotice.objects.update(last_at=timezone.now())
    tell_notices()
    assert [record.seq for record in export_audit(actor=auditor, tenant="acme")] == [1, 2]
    keep_audit()
    assert AuditCheckpoint.objects.filter(chain="acme", seq=2).exists()


def test_the_applications_role_keeps_and_forgets_answers(as_application: None) -> None:
    with only_request_with(owner="o", key="k"):
        keep_answer(owner="o", key="k", fingerprint="f", sealed=b"sealed")
    assert find_answer(owner="o", key="k", fingerprint="f") == b"sealed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("registry.services.idempotency.KEPT_FOR", timedelta())
        assert forget_old_answers() == 1


def live_and_die(adapter: Adapter) -> None:
    reviewer = make_member(adapter.tenant, Role.REVIEWER)
    good = candidate(adapter, seed=1)
    approve_version(actor=reviewer, version=good, digest=good.root_digest)
    write_comment(actor=reviewer, version=good, text="sounds right")
    yank_version(actor=SYSTEM, version=good, reason="old")
    assert revoke_version(actor=SYSTEM, version=good, reason="poisoned").state == VersionState.REVOKED
    set_retention(actor=SYSTEM, adapter=adapter, keep_days=1, automatic=False)
    old = candidate(adapter, seed=3)
    Version.objects.filter(pk=old.pk).update(state_changed_at=timezone.now() - timedelta(days=2))
    plan = plan_retention(policy=adapter.retention_policy)
    assert apply_retention(actor=SYSTEM, adapter=adapter, digest=plan.digest).removed == (old,)
    set_retention(actor=SYSTEM, adapter=adapter, keep_days=1, automatic=True)
    sweep_retention(actor=SYSTEM, policy_id=adapter.retention_policy.pk)
    set_approval_policy(actor=SYSTEM, tenant=adapter.tenant, required=2, roles=[Role.REVIEWER], validity_days=7)
    bad = candidate(adapter, seed=2)
    approve_version(actor=reviewer, version=bad, digest=bad.root_digest)
    decline_version(actor=make_member(adapter.tenant, Role.REVIEWER), version=bad, reason="rude")
    purge_version(version_id=bad.pk)
    assert bad.files.filter(artifact__stored_at=None).count() == 1


def candidate(adapter: Adapter, *, seed: int) -> Version:
    uploader = make_member(adapter.tenant, Role.UPLOADER)
    content = adapter_files(seed=seed)
    files = [SignedFile(**file) for file in manifest_of(content)]
    version = start_upload(actor=uploader, adapter=adapter, base_revision="r1", files=files).version
    for file in files:
        key = object_key(tenant=adapter.tenant.name, sha256=file.sha256)
        artifact_store().put_stream(key, io.BytesIO(content[file.path]), size=file.size, sha256=file.sha256)
    finalize_upload(actor=uploader, version=version)
    send_validation_again(version_id=version.pk)
    report = StoredReport("accept", "1", "", {}, "0" * 64, 4, ("q_proj",))
    return record_validation(actor=SYSTEM, version_id=version.pk, report=report)


def test_the_applications_role_may_upload_in_parts(as_application: None, settings: Any) -> None:
    settings.UPLOAD_PARTS_FROM = 0
    tenant = make_tenant()
    register_base_revision(actor=SYSTEM, name=BASE_NAME, label="r1", description=tiny_description(), max_rank=16)
    adapter = create_adapter(actor=SYSTEM, tenant=tenant, name="support-tone", base_model=BASE_NAME)
    uploader = make_member(tenant, Role.UPLOADER)
    files = [SignedFile(**file) for file in manifest_of(adapter_files())]
    version = start_upload(actor=uploader, adapter=adapter, base_revision="r1", files=files).version
    for _time in range(2):
        start_parts(actor=uploader, version=version, path=files[0].path, digests={1: "0" * 64})
    expire_upload(actor=SYSTEM, version_id=version.pk)
    for upload_id in abandoned_uploads_in_parts():
        abort_upload_in_parts(upload_id=upload_id)
    assert not version.uploads_in_parts.exists()


def test_the_applications_role_may_do_all_that_the_hub_needs(as_application: None, settings: Any) -> None:
    tenant = make_tenant(name="acme")
    register_base_revision(actor=SYSTEM, name=BASE_NAME, label="r1", description=tiny_description(), max_rank=16)
    uploader = make_member(tenant, Role.UPLOADER)
    create_repo(actor=uploader, tenant=tenant, name="tone")
    repo = find_repo(actor=uploader, tenant="acme", name="tone")
    for text in (b"1", b"2"):
        push_files(uploader, "acme/tone", {**adapter_files(), "a.md": text})
    create_branch(actor=uploader, repo=repo, branch="next", start="main")
    delete_branch(actor=uploader, repo=repo, branch="next")
    assert cut_version(actor=uploader, repo=repo, name="v1", revision="main").state == VersionState.VALIDATING
    settings.HUB_DRAFT_TTL_S = 0
    for commit_id in superseded_commits():
        drop_commit(commit_id=commit_id)
    for draft_id in stale_drafts():
        expire_draft(actor=SYSTEM, draft_id=draft_id)
    assert not HubFile.objects.exists()
