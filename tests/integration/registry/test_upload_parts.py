"""Uploads in parts against a real S3, which knows of the whole only what its parts are."""

import hashlib
import io
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.utils import timezone

from deploy.embedded.seaweed import SeaweedServer
from registry.actors import Actor
from registry.errors import UploadIncomplete
from registry.models import Artifact, Tenant, UploadInParts, Version
from registry.naming import object_key
from registry.services import stores, uploads
from registry.services.stores import artifact_store
from registry.services.transfers.parts import complete_parts, list_parts, remove_abandoned_bytes, start_parts
from registry.services.uploads import finalize_upload, start_upload
from registry.services.validation import expire_upload
from registry.signing.manifest import SignedFile
from registry.states import Role, VersionState
from registry.stores.errors import StoreDigestMismatch
from registry.stores.ports import ArtifactStore
from registry.stores.s3 import S3Store
from tests.factories.registry import make_actor, make_adapter, make_base_revision, make_member, make_tenant
from workers import sweeps

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
PART = 5 * 1024 * 1024
PATH = "adapter_model.safetensors"
BODY = random.Random(7).randbytes(PART + 11)
PARTS = {1: BODY[:PART], 2: BODY[PART:]}
TENANT = "in-parts"
FILE = SignedFile(path=PATH, size=len(BODY), sha256=hashlib.sha256(BODY).hexdigest())
KEY = object_key(tenant=TENANT, sha256=FILE.sha256)


@pytest.fixture
def store(s3: SeaweedServer, worker_id: str, settings: Any) -> Iterator[ArtifactStore]:
    settings.STORE = {
        "kind": "s3",
        "endpoint": s3.endpoint,
        "public_endpoint": "",
        "bucket": f"parts-{worker_id}",
        "access_key": s3.credentials.access_key,
        "secret_key": s3.credentials.secret_key,
        "region": s3.region,
    }
    settings.UPLOAD_PARTS_FROM, settings.UPLOAD_PART_BYTES = 0, PART
    stores.artifact_store.cache_clear()
    made = artifact_store()
    made.ensure_ready()
    yield made
    made.delete(KEY)
    made.remove_abandoned(before=timezone.now() + timedelta(hours=1))
    stores.artifact_store.cache_clear()


@pytest.fixture
def uploader(db: None, store: ArtifactStore) -> Actor:
    return make_member(make_tenant(name=TENANT), Role.UPLOADER)


@pytest.fixture
def version(uploader: Actor) -> Version:
    return begun(uploader)


def begun(uploader: Actor) -> Version:
    (tenant_id,) = uploader.roles
    tenant = Tenant.objects.get(pk=tenant_id)
    revision = make_base_revision(label="r1")
    adapter = make_adapter(tenant=tenant, base_model=revision.base_model)
    return start_upload(actor=uploader, adapter=adapter, base_revision="r1", files=[FILE]).version


def send(actor: Actor, version: Version, parts: dict[int, bytes] = PARTS) -> None:
    digests = {number: hashlib.sha256(part).hexdigest() for number, part in parts.items()}
    found = start_parts(actor=actor, version=version, path=PATH, digests=digests)
    for number, put in found.addresses:
        assert httpx.put(put.url, content=parts[number], headers=put.headers).status_code == 200


def is_stored() -> bool:
    return Artifact.objects.get(sha256=FILE.sha256).stored_at is not None


def test_the_whole_is_read_back_before_it_counts_as_stored(uploader: Actor, version: Version) -> None:
    send(uploader, version)
    assert not is_stored()
    complete_parts(actor=uploader, version=version, path=PATH)
    assert is_stored()
    assert not UploadInParts.objects.exists()
    assert finalize_upload(actor=uploader, version=version).state == VersionState.VALIDATING


def test_parts_that_make_other_bytes_are_removed_and_the_right_ones_can_be_sent(
    uploader: Actor, version: Version, store: ArtifactStore
) -> None:
    send(uploader, version, {1: bytes(PART), 2: PARTS[2]})
    with pytest.raises(StoreDigestMismatch) as caught:
        complete_parts(actor=uploader, version=version, path=PATH)
    assert caught.value.field == PATH
    assert store.stat(KEY) is None
    send(uploader, version)
    complete_parts(actor=uploader, version=version, path=PATH)
    assert is_stored()


@pytest.mark.parametrize("right", [True, False])
def test_bytes_that_nobody_read_back_because_of_a_kill_are_read_back_by_finalize(
    uploader: Actor, version: Version, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    send(uploader, version, PARTS if right else {1: bytes(PART), 2: PARTS[2]})
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(uploads, "_sha256_of", lambda _key: (_ for _ in ()).throw(KeyboardInterrupt))
        complete_parts(actor=uploader, version=version, path=PATH)
    assert store.stat(KEY) is not None
    assert not is_stored()
    if right:
        assert finalize_upload(actor=uploader, version=version).state == VersionState.VALIDATING
    else:
        with pytest.raises(StoreDigestMismatch):
            finalize_upload(actor=uploader, version=version)
        assert store.stat(KEY) is None


def test_bytes_that_are_right_take_the_place_of_wrong_ones_that_another_left(
    uploader: Actor, version: Version, store: ArtifactStore
) -> None:
    wrong = store.start_parts(KEY)
    part = b"not the weights"
    digest = hashlib.sha256(part).hexdigest()
    put = store.presign_part(KEY, wrong, number=1, size=len(part), sha256=digest, expires_s=60)
    assert httpx.put(put.url, content=part, headers=put.headers).status_code == 200
    send(uploader, version)
    store.complete_parts(KEY, wrong, [replace(found, sha256=digest) for found in store.list_parts(KEY, wrong)])
    complete_parts(actor=uploader, version=version, path=PATH)
    assert is_stored()
    assert finalize_upload(actor=uploader, version=version).state == VersionState.VALIDATING


def test_an_upload_that_the_store_has_forgotten_begins_anew(
    uploader: Actor, version: Version, store: ArtifactStore
) -> None:
    send(uploader, version, {1: PARTS[1]})
    store.abort_parts(KEY, UploadInParts.objects.get().store_id)
    assert list_parts(actor=uploader, version=version, path=PATH).arrived == ()
    with pytest.raises(UploadIncomplete):
        complete_parts(actor=uploader, version=version, path=PATH)
    send(uploader, version)
    complete_parts(actor=uploader, version=version, path=PATH)
    assert is_stored()


def test_bytes_that_a_killed_purge_took_are_asked_for_again(
    uploader: Actor, version: Version, store: ArtifactStore
) -> None:
    Artifact.objects.update(stored_at=timezone.now())
    send(uploader, version)
    assert not is_stored()
    complete_parts(actor=uploader, version=version, path=PATH)
    assert is_stored()


def test_the_parts_of_an_upload_that_ended_are_swept(uploader: Actor, version: Version, store: S3Store) -> None:
    send(uploader, version, {1: PARTS[1]})
    sweeps.sweep_all()
    assert UploadInParts.objects.count() == 1
    expire_upload(actor=make_actor(), version_id=version.pk)
    sweeps.sweep_all()
    assert not UploadInParts.objects.exists()
    assert store._client.list_multipart_uploads(Bucket=store._bucket).get("Uploads", []) == []


def test_parts_that_no_row_speaks_of_are_swept_when_no_upload_can_want_them(
    store: S3Store, settings: Any, db: None
) -> None:
    store.start_parts(KEY)
    assert remove_abandoned_bytes() == 0
    settings.UPLOAD_TTL_S = -settings.UPLOAD_URL_TTL_S - 60
    assert remove_abandoned_bytes() == 1


def test_a_file_that_came_whole_meanwhile_is_taken_and_the_parts_are_forgotten(
    uploader: Actor, version: Version, store: S3Store
) -> None:
    send(uploader, version, {1: PARTS[1]})
    store.put_stream(KEY, io.BytesIO(BODY), size=len(BODY), sha256=FILE.sha256)
    assert complete_parts(actor=uploader, version=version, path=PATH).stored
    assert not UploadInParts.objects.exists()
    assert store._client.list_multipart_uploads(Bucket=store._bucket).get("Uploads", []) == []
