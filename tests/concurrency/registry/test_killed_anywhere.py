"""Push, finalize, validate, approve and sign, killed before every step in turn: the same again completes it."""

import hashlib
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from registry.actors import system_actor
from registry.models import Artifact, AuditRecord, Signature, UploadInParts, Version
from registry.naming import object_key
from registry.services import stores
from registry.services.adapters import create_adapter
from registry.services.approvals import approve_version
from registry.services.base_models import register_base_revision
from registry.services.stores import artifact_store
from registry.services.transfers import parts
from registry.services.uploads import finalize_upload, start_upload
from registry.signing.manifest import SignedFile
from registry.states import Role, VersionState
from tests.concurrency.killing import Killed, Steps, count_commits, count_store_calls, dies
from tests.factories.adapters import BASE_NAME, adapter_files, manifest_of, tiny_description
from tests.factories.registry import make_member, make_tenant
from workers.jobs.validation import validate_version
from workers.sweeps import sweep_all

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent", "signer")]
ACTIONS = ("upload", "finalize", "validate", "approve")


@pytest.fixture
def bring(store: Any, settings: Any) -> Callable[[str, int], Version]:
    """``bring(name, seed)``: take a version from its first byte to its signature, as its people and workers would."""
    settings.UPLOAD_PARTS_FROM, settings.UPLOAD_PART_BYTES = 500, 4096
    tenant = make_tenant()
    register_base_revision(
        actor=system_actor("test"), name=BASE_NAME, label="r1", description=tiny_description(), max_rank=16
    )
    adapter = create_adapter(actor=system_actor("test"), tenant=tenant, name="tone", base_model=BASE_NAME)
    uploader, reviewer = make_member(tenant, Role.UPLOADER), make_member(tenant, Role.REVIEWER)

    def from_first_byte_to_signature(name: str, seed: int) -> Version:
        content = adapter_files(seed=seed)
        files = [SignedFile(**file) for file in manifest_of(content)]
        started = start_upload(actor=uploader, adapter=adapter, base_revision="r1", files=files, name=name)
        version = started.version
        if version.state == VersionState.UPLOADING:
            for target in started.targets:
                _send(uploader, version, target, content[target.path])
        finalize_upload(actor=uploader, version=version)
        validate_version(version_id=version.pk)
        version.refresh_from_db()
        return approve_version(actor=reviewer, version=version, digest=version.root_digest)

    return from_first_byte_to_signature


def _send(uploader: Any, version: Version, target: Any, content: bytes) -> None:
    store: Any = stores.folder_store()
    if target.part_bytes is None:
        key = object_key(tenant=version.adapter.tenant.name, sha256=hashlib.sha256(content).hexdigest())
        artifact_store().put_stream(key, io.BytesIO(content), size=len(content), sha256=key[-64:])
        return
    cut = [content[start : start + target.part_bytes] for start in range(0, len(content), target.part_bytes)]
    digests = {number: hashlib.sha256(part).hexdigest() for number, part in enumerate(cut, start=1)}
    found = parts.start_parts(actor=uploader, version=version, path=target.path, digests=digests)
    for number, put in found.addresses:
        body = cut[number - 1]
        store.accept_put(put.url.rpartition("/")[2], io.BytesIO(body), content_length=len(body))
    parts.complete_parts(actor=uploader, version=version, path=target.path)


def test_a_kill_before_any_step_is_made_good_by_doing_the_same_again(
    bring: Callable[[str, int], Version], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = 0
    while True:
        kills += 1
        steps = Steps(kill_before=kills)
        name = f"v{kills}"
        with monkeypatch.context() as patch:
            count_store_calls(patch, steps)
            count_commits(patch, steps)
            try:
                bring(name, kills)
            except Killed:
                pass
            else:
                break
        assert bring(name, kills).state == VersionState.APPROVED
        assert_complete(name)
    print(f"\nkilled before each of {kills - 1} steps")
    assert kills > 20
    sweep_all()
    assert_no_orphans(tmp_path)


@pytest.mark.e2e
def test_sigkill_before_any_statement_file_change_commit_or_signature_is_made_good(
    bring: Callable[[str, int], Version], tmp_path: Path, settings: Any
) -> None:
    kills = 1
    while dies(partial(bring, f"v{kills}", kills), before_step=kills):
        assert bring(f"v{kills}", kills).state == VersionState.APPROVED
        assert_complete(f"v{kills}")
        kills += 1
    print(f"\nSIGKILL before each of {kills - 1} steps")
    assert kills > 60
    settings.UPLOAD_TTL_S = settings.UPLOAD_URL_TTL_S = -1
    sweep_all()
    parts.remove_abandoned_bytes()
    assert_no_orphans(tmp_path)


def assert_no_orphans(tmp_path: Path) -> None:
    """The store holds what the database says, no more and no less."""
    assert not UploadInParts.objects.exists()
    lying = {path.name for path in (tmp_path / "store").rglob("*") if path.is_file()}
    assert lying == set(Artifact.objects.values_list("sha256", flat=True))


def assert_complete(name: str) -> None:
    version = Version.objects.get(name=name)
    assert Signature.objects.filter(version=version).count() == 1
    for action in ACTIONS:
        records = AuditRecord.objects.filter(action=f"adapter:version:{action}", object__id=str(version.pk))
        assert records.count() == 1, action
