"""Web and workers run as a role that owns nothing: everything the registry does has to work with its grants alone."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from deploy.embedded.postgres import APP
from registry.actors import system_actor
from registry.models import Adapter, Version
from registry.naming import object_key
from registry.permissions import Action
from registry.reports import StoredReport
from registry.selectors import get_tenant
from registry.services.adapters import create_adapter
from registry.services.approvals import approve_version, decline_version
from registry.services.base_models import register_base_revision
from registry.services.bootstrap import bootstrap_platform
from registry.services.stores import artifact_store
from registry.services.tenants import add_member, create_tenant, remove_member
from registry.services.tokens import authenticate_token, create_tenant_token, revoke_token
from registry.services.uploads import finalize_upload, start_upload
from registry.services.validation import purge_version, record_validation, send_validation_again
from registry.services.withdrawals import revoke_version, yank_version
from registry.signing.manifest import SignedFile
from registry.states import Role, Scope, TokenKind, VersionState
from tests.factories.adapters import BASE_NAME, adapter_files, manifest_of, tiny_description
from tests.factories.registry import make_member

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


def live_and_die(adapter: Adapter) -> None:
    reviewer = make_member(adapter.tenant, Role.REVIEWER)
    good = candidate(adapter, seed=1)
    approve_version(actor=reviewer, version=good, digest=good.root_digest)
    yank_version(actor=SYSTEM, version=good, reason="old")
    assert revoke_version(actor=SYSTEM, version=good, reason="poisoned").state == VersionState.REVOKED
    bad = candidate(adapter, seed=2)
    decline_version(actor=reviewer, version=bad, reason="rude")
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
