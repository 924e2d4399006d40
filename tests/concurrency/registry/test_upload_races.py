"""Two uploaders of the same bytes at the same moment."""

import hashlib
import io
from typing import Any

import pytest

from registry.actors import Actor
from registry.models import Artifact, UploadInParts, Version
from registry.services.stores import folder_store
from registry.services.transfers.parts import complete_parts, start_parts
from registry.services.uploads import finalize_upload, start_upload
from registry.signing.manifest import SignedFile
from registry.states import Role, VersionState
from registry.stores.errors import StoreDigestMismatch
from tests.concurrency.racing import errors_in, race
from tests.factories.registry import make_adapter, make_base_revision, make_member

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store", "sent")]
PATH = "adapter_model.safetensors"
PARTS = (b"a" * 4096, b"b" * 10)
BODY = b"".join(PARTS)
FILE = SignedFile(path=PATH, size=len(BODY), sha256=hashlib.sha256(BODY).hexdigest())
Uploads = list[tuple[Actor, Version]]


@pytest.fixture
def uploads(settings: Any) -> Uploads:
    """Two people's versions of the same file, in adapters of one tenant."""
    settings.UPLOAD_PARTS_FROM, settings.UPLOAD_PART_BYTES = 0, 4096
    revision = make_base_revision(label="r1")
    first = make_adapter(base_model=revision.base_model)
    second = make_adapter(base_model=revision.base_model, tenant=first.tenant)
    people = [make_member(first.tenant, Role.UPLOADER) for _person in range(2)]
    return [
        (person, start_upload(actor=person, adapter=adapter, base_revision="r1", files=[FILE]).version)
        for person, adapter in zip(people, (first, second), strict=True)
    ]


def send(actor: Actor, version: Version, parts: tuple[bytes, ...] = PARTS) -> None:
    digests = {number: hashlib.sha256(part).hexdigest() for number, part in enumerate(parts, start=1)}
    for number, put in start_parts(actor=actor, version=version, path=PATH, digests=digests).addresses:
        body = parts[number - 1]
        assert folder_store().accept_put(put.url.rpartition("/")[2], io.BytesIO(body), content_length=len(body))


def finish(actor: Actor, version: Version) -> Version:
    complete_parts(actor=actor, version=version, path=PATH)
    return finalize_upload(actor=actor, version=version)


def test_the_same_bytes_are_stored_once_and_both_go_on(uploads: Uploads) -> None:
    for actor, version in uploads:
        send(actor, version)
    results = race(*[lambda upload=upload: finish(*upload) for upload in uploads])
    assert errors_in(results) == []
    assert {version.state for version in Version.objects.all()} == {VersionState.VALIDATING}
    assert Artifact.objects.exclude(stored_at=None).count() == 1
    assert not UploadInParts.objects.exists()


def test_wrong_bytes_at_the_same_moment_spoil_nothing_for_the_right_ones(uploads: Uploads) -> None:
    right, wrong = uploads
    send(*right)
    send(*wrong, parts=(b"c" * 4096, b"d" * 10))
    results = race(lambda: finish(*right), lambda: finish(*wrong))
    assert all(isinstance(error, StoreDigestMismatch) for error in errors_in(results))
    assert Version.objects.get(pk=right[1].pk).state == VersionState.VALIDATING


def test_one_uploader_twice_at_once_begins_one_upload(uploads: Uploads) -> None:
    actor, version = uploads[0]
    assert errors_in(race(*[lambda: send(actor, version)] * 4)) == []
    assert UploadInParts.objects.count() == 1
    assert errors_in(race(*[lambda: finish(actor, version)] * 3)) == []
    assert Version.objects.get(pk=version.pk).state == VersionState.VALIDATING
