"""Keys that take over, end and are revoked, with what that means for what they signed."""

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from registry.errors import InvalidInput, NotFound, PermissionDenied, SignerUnavailable, StaleState
from registry.models import AuditRecord, Signature, SigningKey, Version
from registry.services import keys
from registry.services.keys import publish_key, revoke_signing_key, rotate_signing_key, signer
from registry.services.resigning import resign_version, signatures_to_renew
from registry.signing.bundle import ReleaseClaims, sign_files, sign_release
from registry.signing.errors import KeyRevoked
from registry.signing.keys import TrustedKeys
from registry.signing.local_key import LocalKeySigner
from registry.signing.manifest import SignedFile
from registry.signing.rotation import HANDOVER
from registry.signing.verify import verify_bundle, verify_release
from registry.states import VersionState
from tests.factories.keys import make_signers
from tests.factories.registry import make_actor, make_approval, make_person, make_version

pytestmark = pytest.mark.django_db
SYSTEM = make_actor()


@pytest.fixture
def signers(settings: Any, tmp_path: Path) -> Iterator[list[LocalKeySigner]]:
    """Two configured keys; the first is published and signs."""
    made = make_signers(tmp_path, "old.pem", "new.pem")
    settings.SIGNING_KEYS = list(made)
    keys.signer_at.cache_clear()
    publish_key(actor=SYSTEM, signer=signer())
    yield list(made.values())
    keys.signer_at.cache_clear()


def at(moment: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timezone, "now", lambda: moment)


def actions() -> list[str]:
    return list(AuditRecord.objects.filter(chain="platform").order_by("seq").values_list("action", flat=True))


def trusted() -> TrustedKeys:
    """The keys as a verifier gets them from the published list."""
    out = io.StringIO()
    call_command("export_trusted_keys", stdout=out)
    return TrustedKeys.from_text(out.getvalue())


def test_another_key_takes_over_at_its_time_and_the_old_one_ends_a_little_later(
    signers: list[LocalKeySigner], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = signers
    change = (timezone.now() + timedelta(hours=1)).replace(microsecond=0)
    rotate_signing_key(actor=SYSTEM, at=change)
    assert signer().key_id == old.key_id
    at(change, monkeypatch)
    assert signer().key_id == new.key_id
    assert SigningKey.objects.get(key_id=old.key_id).valid_to == change + HANDOVER
    assert actions() == ["platform:signing_key:publish", "platform:signing_key:publish", "platform:signing_key:end"]


def test_what_was_signed_before_during_and_after_a_rotation_verifies_with_the_published_keys(
    signers: list[LocalKeySigner],
) -> None:
    files = [SignedFile("adapter_config.json", 2, "1" * 64)]
    before = sign_files(signer(), files)
    rotate_signing_key(actor=SYSTEM)
    after = sign_files(signer(), files)
    for bundle in (before, after, sign_files(signers[0], files)):
        assert verify_bundle(bundle, trusted(), now=timezone.now() + timedelta(days=900)) == tuple(files)
    assert signer().key_id == signers[1].key_id


def test_a_rotation_that_was_done_already_changes_nothing(signers: list[LocalKeySigner]) -> None:
    first = rotate_signing_key(actor=SYSTEM)
    again = rotate_signing_key(actor=SYSTEM, key_id=signers[1].key_id)
    assert (first.pk, first.valid_from) == (again.pk, again.valid_from)
    assert actions().count("platform:signing_key:end") == 1


def test_a_rotation_before_one_that_is_planned_ends_where_that_begins(
    settings: Any, signers: list[LocalKeySigner], tmp_path: Path
) -> None:
    later = timezone.now() + timedelta(days=7)
    planned = rotate_signing_key(actor=SYSTEM, at=later)
    ((path, _signer),) = make_signers(tmp_path, "between.pem").items()
    settings.SIGNING_KEYS = [*settings.SIGNING_KEYS, path]
    between = rotate_signing_key(actor=SYSTEM)
    assert between.valid_to == planned.valid_from + HANDOVER
    planned.refresh_from_db()
    assert planned.valid_to is None


def test_what_can_not_be_rotated_to_is_refused(settings: Any, signers: list[LocalKeySigner]) -> None:
    with pytest.raises(InvalidInput) as caught:
        rotate_signing_key(actor=SYSTEM, at=timezone.now() - timedelta(minutes=1))
    assert caught.value.field == "at"
    with pytest.raises(NotFound):
        rotate_signing_key(actor=SYSTEM, key_id="f" * 64)
    rotate_signing_key(actor=SYSTEM)
    with pytest.raises(InvalidInput, match="0 configured keys"):
        rotate_signing_key(actor=SYSTEM)
    with pytest.raises(InvalidInput, match="is over"):
        rotate_signing_key(actor=SYSTEM, key_id=signers[0].key_id)
    with pytest.raises(PermissionDenied):
        rotate_signing_key(actor=make_actor(make_person()))


def test_a_key_that_can_not_be_used_never_lets_another_take_over_unasked(
    settings: Any, signers: list[LocalKeySigner], tmp_path: Path
) -> None:
    settings.SIGNING_KEYS = [str(tmp_path / "gone.pem"), settings.SIGNING_KEYS[1]]
    with pytest.raises(SignerUnavailable):
        signer()
    settings.SIGNING_KEYS = []
    with pytest.raises(SignerUnavailable):
        signer()


def signed_version(by: LocalKeySigner, state: VersionState = VersionState.APPROVED) -> Version:
    """A version in ``state`` that was approved with a real signature by this key."""
    version = make_version(state=VersionState.CANDIDATE)
    files = [SignedFile(f.path, f.artifact.size, f.artifact.sha256) for f in version.files.select_related("artifact")]
    claims = ReleaseClaims(
        tenant=version.adapter.tenant.name,
        adapter=version.adapter.name,
        version=version.name,
        base_model=version.base_revision.base_model.name,
        base_revision=version.base_revision.digest,
        rank=8,
        root_digest=version.root_digest,
        engine_name=version.engine_name,
        validation_digest=version.validation_digest,
        approvals=({"reviewer": "rita@example.com"},),
    )
    Signature.objects.create(
        version=version,
        key=publish_key(actor=SYSTEM, signer=by),
        root_digest=version.root_digest,
        bundle=sign_files(by, files),
        attestation=sign_release(by, claims, files),
    )
    make_approval(version)
    for to in (VersionState.APPROVED, state):
        Version.objects.filter(pk=version.pk).update(state=to.value)
    return version


def test_what_a_revoked_key_signed_is_signed_again_with_the_same_statements(signers: list[LocalKeySigner]) -> None:
    old, new = signers
    version, gone = signed_version(old), signed_version(old, VersionState.REVOKED)
    claims = verify_release(version.signature.attestation, trusted())
    rotate_signing_key(actor=SYSTEM)
    out = io.StringIO()
    call_command("revoke_signing_key", old.key_id, "--reason", "laptop stolen", stdout=out)
    assert str(version.pk) in out.getvalue()
    signature = Signature.objects.get(version=version)
    assert signature.key.key_id == new.key_id
    assert signature.resigned_at is not None
    assert verify_release(signature.attestation, trusted()) == claims
    assert verify_bundle(signature.bundle, trusted())
    with pytest.raises(KeyRevoked):
        verify_bundle(gone.signature.bundle, trusted())
    record = AuditRecord.objects.get(action="adapter:version:resign")
    assert record.before is not None
    assert record.after is not None
    assert (record.reason, record.before["key"], record.after["key"]) == ("laptop stolen", old.key_id, new.key_id)


def test_what_a_key_signed_just_before_it_was_revoked_is_not_kept(signers: list[LocalKeySigner]) -> None:
    revoke_signing_key(actor=SYSTEM, key_id=signers[0].key_id, reason="stolen")
    with pytest.raises(StaleState):
        publish_key(actor=SYSTEM, signer=signers[0])


def test_revoking_and_signing_again_may_be_repeated(signers: list[LocalKeySigner]) -> None:
    version = signed_version(signers[0])
    rotate_signing_key(actor=SYSTEM)
    for _time in range(2):
        revoke_signing_key(actor=SYSTEM, key_id=signers[0].key_id, reason="stolen")
        for version_id in (*signatures_to_renew(), version.pk):
            resign_version(actor=SYSTEM, version_id=version_id)
    assert signatures_to_renew() == []
    assert AuditRecord.objects.filter(action="adapter:version:resign").count() == 1
    assert actions().count("platform:signing_key:revoke") == 1


def test_without_another_key_what_was_revoked_waits_to_be_signed(settings: Any, signers: list[LocalKeySigner]) -> None:
    version = signed_version(signers[0])
    settings.SIGNING_KEYS = settings.SIGNING_KEYS[:1]
    with pytest.raises(CommandError, match="Run this again"):
        call_command("revoke_signing_key", signers[0].key_id, "--reason", "stolen", stdout=io.StringIO())
    assert signatures_to_renew() == [version.pk]


def test_a_signature_that_does_not_hold_keeps_no_other_from_being_signed_again(signers: list[LocalKeySigner]) -> None:
    broken, _good = (signed_version(signers[0]) for _ in range(2))
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE registry_signature DISABLE TRIGGER USER")
        cursor.execute("UPDATE registry_signature SET bundle = '{}' WHERE version_id = %s", [broken.pk])
        cursor.execute("ALTER TABLE registry_signature ENABLE TRIGGER USER")
    rotate_signing_key(actor=SYSTEM)
    with pytest.raises(CommandError, match=str(broken.pk)):
        call_command("revoke_signing_key", signers[0].key_id, "--reason", "stolen", stdout=io.StringIO())
    assert signatures_to_renew() == [broken.pk]


def test_a_command_that_is_refused_says_why(signers: list[LocalKeySigner]) -> None:
    with pytest.raises(CommandError, match="ever published"):
        call_command("revoke_signing_key", "f" * 64, "--reason", "stolen")
    with pytest.raises(CommandError, match="time"):
        call_command("rotate_signing_key", "--at", "tomorrow")
    out = io.StringIO()
    call_command("rotate_signing_key", "--at", "2999-01-01T00:00:00Z", stdout=out)
    assert f"{signers[1].key_id} signs from 2999-01-01" in out.getvalue()


def test_trusted_keys_are_written_to_a_file_with_their_times(signers: list[LocalKeySigner], tmp_path: Path) -> None:
    rotate_signing_key(actor=SYSTEM)
    revoke_signing_key(actor=SYSTEM, key_id=signers[0].key_id, reason="stolen")
    call_command("export_trusted_keys", str(tmp_path / "trusted.pem"))
    text = (tmp_path / "trusted.pem").read_text()
    assert [word in text for word in ("Valid-From", "Valid-To", "Revoked")] == [True, True, True]
    found = TrustedKeys.from_text(text)
    assert found.find(signers[1].key_id)
    with pytest.raises(KeyRevoked):
        found.find(signers[0].key_id)


def test_a_key_is_made_once_and_its_file_of_trusted_keys_kept(tmp_path: Path) -> None:
    path = tmp_path / "signing.pem"
    call_command("create_signing_key", str(path), stdout=io.StringIO())
    public = path.with_name("signing.pem.pub")
    public.write_text(f"Valid-To: 2999-01-01T00:00:00Z\n{public.read_text()}")
    before = public.read_text()
    call_command("create_signing_key", str(path), stdout=io.StringIO())
    assert public.read_text() == before


def refused(sql: str, *params: str | int) -> str:
    with pytest.raises(DatabaseError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)
    return str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        "key_id = 'x'",
        "public_pem = 'x'",
        "valid_from = now() - interval '1 year'",
        "valid_to = now() - interval '1 hour'",
    ],
)
def test_a_published_key_never_changes_and_never_ends_in_the_past(signers: list[LocalKeySigner], change: str) -> None:
    refused(f"UPDATE registry_signingkey SET {change} WHERE key_id = %s", signers[0].key_id)
    assert "never changes" in refused("DELETE FROM registry_signingkey WHERE key_id = %s", signers[0].key_id)


def test_a_revocation_stays(signers: list[LocalKeySigner]) -> None:
    revoke_signing_key(actor=SYSTEM, key_id=signers[0].key_id, reason="stolen")
    sql = "UPDATE registry_signingkey SET revoked_at = NULL WHERE key_id = %s"
    assert "stays" in refused(sql, signers[0].key_id)


def test_a_signature_by_a_key_that_is_trusted_never_changes(signers: list[LocalKeySigner]) -> None:
    version = signed_version(signers[0])
    sql = "UPDATE registry_signature SET bundle = '{}' WHERE version_id = %s"
    assert "never changes" in refused(sql, str(version.pk))
    revoke_signing_key(actor=SYSTEM, key_id=signers[0].key_id, reason="stolen")
    assert "never changes" in refused(sql, str(version.pk)), "not to another text by the revoked key"
    assert "never changes" in refused("DELETE FROM registry_signature WHERE version_id = %s", str(version.pk))


def test_an_end_that_has_come_stays(monkeypatch: pytest.MonkeyPatch, signers: list[LocalKeySigner]) -> None:
    ended = SigningKey.objects.create(
        key_id="e" * 64,
        public_pem="x",
        valid_from=datetime(2020, 1, 1, tzinfo=UTC),
        valid_to=datetime(2021, 1, 1, tzinfo=UTC),
    )
    assert "stays" in refused(
        "UPDATE registry_signingkey SET valid_to = now() + interval '1 day' WHERE id = %s", ended.pk
    )
