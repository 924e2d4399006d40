"""A process may end at any step of an approval or of a removal: doing it again ends it, and nothing is double."""

import hashlib
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NoReturn

import pytest
from django.db import transaction
from django.utils import timezone

from registry import events
from registry.errors import SignerUnavailable, VersionExists
from registry.models import Approval, AuditRecord, RetentionPolicy, Signature, SigningKey, Version
from registry.naming import object_key
from registry.services import approvals, purges
from registry.services.approvals import approve_version, break_glass
from registry.services.retention import apply_retention, plan_retention
from registry.services.review import sealing
from registry.services.stores import artifact_store
from registry.services.uploads import start_upload
from registry.states import Role, VersionState
from tests.factories.registry import make_actor, make_member, make_person, make_version
from workers.sweeps import sweep_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent", "signer", "store")]


class Killed(BaseException):
    """Stands for a process that ends here: nothing may catch it."""


def dies(*_args: object, **_facts: object) -> NoReturn:
    raise Killed


def dies_after(step: Callable[..., Any]) -> Callable[..., NoReturn]:
    def act(*args: object, **facts: object) -> NoReturn:
        step(*args, **facts)
        raise Killed

    return act


APPROVAL_STEPS = [
    (sealing, "sign_files"),
    (sealing, "sign_release"),
    (approvals, "lock_policy"),
    (approvals, "_write"),
    (approvals, "keep_seal"),
    (approvals, "move_version"),
    (events, "version_moved"),
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("where", "step"), APPROVAL_STEPS, ids=[step for _where, step in APPROVAL_STEPS])
def test_an_approval_that_was_cut_off_is_given_once_by_doing_it_again(where: Any, step: str, after: bool) -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ben = make_member(version.adapter.tenant, Role.REVIEWER)

    def approve() -> Version:
        return approve_version(actor=ben, version=version, digest=version.root_digest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, step, dies_after(getattr(where, step)) if after else dies)
        with pytest.raises(Killed):
            approve()
    assert (Approval.objects.count(), Signature.objects.count(), AuditRecord.objects.count()) == (0, 0, 0)
    assert approve().state == VersionState.APPROVED
    assert (Approval.objects.count(), Signature.objects.count()) == (1, 1)
    assert AuditRecord.objects.filter(action="adapter:version:approve").count() == 1


def test_broken_glass_that_was_cut_off_is_told_nowhere() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    admin = make_actor(make_person(is_platform_admin=True))

    def act() -> Version:
        return break_glass(actor=admin, version=version, digest=version.root_digest, reason="down")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "version_moved", dies)
        with pytest.raises(Killed):
            act()
    assert not AuditRecord.objects.exists()
    assert act().state == VersionState.APPROVED
    assert AuditRecord.objects.filter(action__contains="break_glass").count() == 2


@pytest.mark.parametrize("step", ["remove_unneeded", "version_purged"])
def test_a_removal_that_was_cut_off_leaves_no_version_in_use_without_its_files_and_is_ended_later(step: str) -> None:
    contents = [b"{}", b"first", b"# the second"]
    first = make_version(files={"adapter_config.json": contents[0], "adapter_model.safetensors": contents[1]})
    second = make_version(adapter=first.adapter, files={"adapter_config.json": contents[0], "README.md": contents[2]})
    Version.objects.update(state_changed_at=timezone.now() - timedelta(days=9))
    for content in contents:
        put(first, content)
    policy = RetentionPolicy.objects.create(adapter=first.adapter, keep_days=1)

    def apply() -> None:
        apply_retention(actor=make_actor(), adapter=first.adapter, digest=plan_retention(policy=policy).digest)

    where: Any = purges if step == "remove_unneeded" else events
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, step, dies_after(getattr(where, step)))
        with pytest.raises(Killed):
            apply()
    for version in Version.objects.filter(purged_at__isnull=True):
        for file in version.files.all():
            assert artifact_store().stat(key_of(version, file.artifact.sha256)) is not None
    apply()
    sweep_all()
    assert Version.objects.filter(purged_at__isnull=False).count() == 2
    assert AuditRecord.objects.filter(action="adapter:version:purge").count() == 2
    for file in [*first.files.all(), *second.files.all()]:
        assert artifact_store().stat(key_of(first, file.artifact.sha256)) is None


def key_of(version: Version, sha256: str) -> str:
    return object_key(tenant=version.adapter.tenant.name, sha256=sha256)


def put(version: Version, content: bytes) -> None:
    sha256 = hashlib.sha256(content).hexdigest()
    key = key_of(version, sha256)
    artifact_store().put_stream(key, io.BytesIO(content), size=len(content), sha256=sha256)


def test_a_seal_by_a_key_that_was_revoked_meanwhile_is_not_kept() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    ben = make_member(version.adapter.tenant, Role.REVIEWER)
    make = sealing.make_seal

    def made_by_a_key_that_is_stolen(found: Version, words: Any) -> sealing.Seal:
        seal = make(found, words)
        with transaction.atomic():
            SigningKey.objects.get_or_create(
                key_id=seal.key.key_id,
                defaults={"public_pem": "x", "valid_from": timezone.now(), "revoked_at": timezone.now()},
            )
        return seal

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(approvals, "make_seal", made_by_a_key_that_is_stolen)
        with pytest.raises(SignerUnavailable):
            approve_version(actor=ben, version=version, digest=version.root_digest)
    version.refresh_from_db()
    assert version.state == VersionState.CANDIDATE
    assert not Signature.objects.exists()


def test_a_version_whose_bytes_are_gone_is_not_pushed_again_under_its_name() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    Version.objects.filter(pk=version.pk).update(purged_at=timezone.now())
    uploader = make_member(version.adapter.tenant, Role.UPLOADER)
    with pytest.raises(VersionExists):
        start_upload(
            actor=uploader,
            adapter=version.adapter,
            base_revision=version.base_revision.label,
            files=sealing.signed_files(version),
            name=version.name,
        )
