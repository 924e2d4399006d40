"""The rules of registry/sql hold against whoever writes SQL, whatever the code above does."""

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from registry.models import Approval, Artifact, SigningKey, Version, VersionComment
from registry.states import VERSION_MOVES, VersionState
from tests.factories.registry import digest_for, make_approval, make_person, make_signature, make_version

pytestmark = pytest.mark.django_db


def refused(sql: str, *params: str | int) -> str:
    """Run ``sql`` in a savepoint; it has to fail. Returns the database's words."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)
    return str(caught.value)


@pytest.mark.parametrize(
    "change",
    ["name = 'other'", "root_digest = repeat('0', 64)", "engine_name = 'lk-other'", "created_at = now()", "rank = 99"],
)
def test_what_a_version_is_never_changes(change: str) -> None:
    version = make_version(state=VersionState.APPROVED)
    message = refused(f"UPDATE registry_version SET {change} WHERE id = %s", str(version.pk))
    assert "immutable" in message or "never changes" in message


def test_a_version_is_never_deleted() -> None:
    version = make_version(state=VersionState.REJECTED)
    assert "never deleted" in refused("DELETE FROM registry_version WHERE id = %s", str(version.pk))


@pytest.mark.parametrize("was", list(VersionState))
@pytest.mark.parametrize("to", list(VersionState))
def test_the_database_allows_exactly_the_moves_of_the_table(was: VersionState, to: VersionState) -> None:
    if was is to:
        pytest.skip("not a move")
    version = make_version(state=was)
    facts = ", rank = 1, validation_digest = repeat('a', 64)" if was is VersionState.VALIDATING else ""
    sql = f"UPDATE registry_version SET state = %s{facts} WHERE id = %s"
    if (was, to) == (VersionState.CANDIDATE, VersionState.APPROVED):
        assert "signature" in refused(sql, to.value, str(version.pk))
    elif (was, to) in VERSION_MOVES:
        with connection.cursor() as cursor:
            cursor.execute(sql, [to.value, str(version.pk)])
        assert Version.objects.get(pk=version.pk).state == to
    else:
        refused(sql, to.value, str(version.pk))


def test_files_are_fixed_when_the_upload_starts() -> None:
    version = make_version(state=VersionState.APPROVED)
    file = version.files.first()
    assert file is not None
    assert "never change" in refused("UPDATE registry_versionfile SET path = 'x' WHERE id = %s", file.pk)
    assert "never change" in refused("DELETE FROM registry_versionfile WHERE id = %s", file.pk)
    sql = "INSERT INTO registry_versionfile (version_id, path, artifact_id) VALUES (%s, 'late.json', %s)"
    assert "when the upload starts" in refused(sql, str(version.pk), file.artifact_id)


def test_the_uploader_never_approves_even_by_sql() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    with pytest.raises(DatabaseError, match="uploader never approves"), transaction.atomic():
        Approval.objects.create(
            version=version,
            reviewer=version.uploader,
            decision="approved",
            root_digest=version.root_digest,
            validation_digest=version.validation_digest,
            base_digest=version.base_revision.digest,
        )


def test_an_approval_of_another_digest_is_refused() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    with pytest.raises(DatabaseError, match="names the digests"), transaction.atomic():
        Approval.objects.create(
            version=version,
            reviewer=make_person(),
            decision="approved",
            root_digest=digest_for("other"),
            validation_digest=version.validation_digest,
            base_digest=version.base_revision.digest,
        )


def test_a_version_name_is_used_once_for_ever() -> None:
    version = make_version(state=VersionState.REJECTED)
    with pytest.raises(DatabaseError, match="version_name_once"), transaction.atomic():
        Version.objects.create(
            adapter=version.adapter,
            name=version.name,
            base_revision=version.base_revision,
            uploader=version.uploader,
            root_digest=digest_for("again"),
            engine_name="lk-again",
            state_changed_at=version.created_at,
        )


def test_a_candidate_has_been_validated() -> None:
    version = make_version(state=VersionState.VALIDATING)
    assert "version_validated_before_candidate" in refused(
        "UPDATE registry_version SET state = 'candidate' WHERE id = %s", str(version.pk)
    )


@pytest.mark.parametrize("table", ["registry_signature", "registry_approval"])
def test_signatures_and_approvals_never_change(table: str) -> None:
    version = make_version(state=VersionState.APPROVED)
    assert "never changes" in refused(f"UPDATE {table} SET root_digest = '' WHERE version_id = %s", str(version.pk))
    assert "never changes" in refused(f"DELETE FROM {table} WHERE version_id = %s", str(version.pk))


@pytest.mark.parametrize("change", ["sha256 = repeat('0', 64)", "size = 1", "created_at = now()"])
def test_what_is_stored_is_never_taken_for_other_bytes(change: str) -> None:
    artifact = make_version().files.first()
    assert artifact is not None
    message = refused(f"UPDATE registry_artifact SET {change} WHERE id = %s", artifact.artifact_id)
    assert "immutable" in message or "never changes" in message
    assert "never deleted" in refused("DELETE FROM registry_artifact WHERE id = %s", artifact.artifact_id)


def test_a_version_goes_to_validation_only_with_all_of_its_files() -> None:
    version = make_version(state=VersionState.UPLOADING)
    Artifact.objects.filter(files__version=version).update(stored_at=None)
    sql = "UPDATE registry_version SET state = 'validating' WHERE id = %s"
    assert "all of its files" in refused(sql, str(version.pk))


def test_approved_takes_an_approval_of_what_the_version_is_now() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    make_signature(version)
    sql = "UPDATE registry_version SET state = 'approved' WHERE id = %s"
    assert "somebody who approved" in refused(sql, str(version.pk))
    make_approval(version)
    Version.objects.filter(pk=version.pk).update(validation_digest=digest_for("a new report"))
    assert "somebody who approved" in refused(sql, str(version.pk))


def test_an_approval_is_of_a_candidate_with_its_base() -> None:
    for state in (VersionState.REJECTED, VersionState.APPROVED):
        with pytest.raises(DatabaseError, match="only a candidate"), transaction.atomic():
            make_approval(make_version(state=state))
    version = make_version(state=VersionState.CANDIDATE)
    with pytest.raises(DatabaseError, match="names the digests"), transaction.atomic():
        Approval.objects.create(
            version=version,
            reviewer=make_person(),
            decision="approved",
            root_digest=version.root_digest,
            validation_digest=version.validation_digest,
            base_digest=digest_for("another base"),
        )


def test_approved_takes_a_signature_by_a_key_that_is_trusted() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    signature = make_signature(version)
    make_approval(version)
    SigningKey.objects.filter(pk=signature.key_id).update(revoked_at=timezone.now())
    sql = "UPDATE registry_version SET state = 'approved' WHERE id = %s"
    assert "only with its signature" in refused(sql, str(version.pk))


@pytest.mark.parametrize("state", [VersionState.APPROVED, VersionState.REJECTED, VersionState.REVOKED])
def test_the_report_that_was_decided_on_never_changes(state: VersionState) -> None:
    version = make_version(state=state)
    sql = "UPDATE registry_version SET validation_digest = repeat('0', 64) WHERE id = %s"
    assert "decided on" in refused(sql, str(version.pk))


def test_a_purged_version_stays_purged_and_is_not_approved() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    make_signature(version)
    make_approval(version)
    Version.objects.filter(pk=version.pk).update(purged_at=timezone.now())
    assert "stays purged" in refused("UPDATE registry_version SET purged_at = NULL WHERE id = %s", str(version.pk))
    sql = "UPDATE registry_version SET state = 'approved' WHERE id = %s"
    assert "purged version is not approved" in refused(sql, str(version.pk))


def test_an_alias_does_not_point_to_a_purged_version() -> None:
    version = make_version()
    Version.objects.filter(pk=version.pk).update(purged_at=timezone.now())
    message = refused(
        "INSERT INTO releases_alias (tenant_id, name, adapter_id, version_id, revision, moved_by, updated_at)"
        " VALUES (%s, 'a', %s, %s, 1, 'set', now())",
        version.adapter.tenant_id,
        version.adapter_id,
        str(version.pk),
    )
    assert "files were removed" in message


def test_comments_never_change() -> None:
    version = make_version()
    comment = VersionComment.objects.create(version=version, author=make_person(), text="so loud")
    assert "never changes" in refused("UPDATE registry_versioncomment SET text = '' WHERE id = %s", comment.pk)
    assert "never changes" in refused("DELETE FROM registry_versioncomment WHERE id = %s", comment.pk)


def test_breaking_the_glass_takes_a_reason_even_by_sql() -> None:
    version = make_version(state=VersionState.CANDIDATE)
    with pytest.raises(DatabaseError, match="break_glass_has_a_reason"), transaction.atomic():
        Approval.objects.create(
            version=version,
            reviewer=make_person(),
            decision="approved",
            break_glass=True,
            root_digest=version.root_digest,
            validation_digest=version.validation_digest,
            base_digest=version.base_revision.digest,
        )
