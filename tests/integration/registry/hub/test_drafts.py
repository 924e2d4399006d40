"""What becomes of drafts: they expire, they let go of their bytes, and their commits never change."""

import errno
import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from registry.actors import Actor, system_actor
from registry.errors import InvalidInput, RevisionNotFound, UploadIncomplete, WrongState
from registry.hub.names import MAIN
from registry.hub.operations import Header, read_operations
from registry.models import Adapter, Artifact, AuditRecord, BaseModel, HubCommit, HubDraft, HubFile, Version
from registry.naming import object_key
from registry.services.hub import commits, drafts
from registry.services.hub.drafts import create_branch, create_repo, find_draft
from registry.services.hub.expiry import drop_commit, expire_draft, remove_draft, stale_drafts, superseded_commits
from registry.services.hub.repos import find_repo
from registry.services.hub.revisions import resolve_revision
from registry.services.hub.versions import cut_version
from registry.services.uploads import start_upload
from registry.services.validation import purge_version
from registry.signing.manifest import SignedFile
from registry.states import Role, VersionState
from registry.stores.errors import StoreUnavailable
from registry.transitions import move_version
from tests.factories.adapters import adapter_files, manifest_of
from tests.factories.hub import added, commit_body, push_files
from tests.factories.registry import make_adapter, make_base_revision, make_member, make_tenant
from workers.sweeps import sweep_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store", "sent")]
SYSTEM = system_actor("sweep")


@pytest.fixture
def adapter() -> Adapter:
    return make_adapter(tenant=make_tenant(name="acme"), base_model=make_base_revision(label="r1").base_model)


@pytest.fixture
def uploader(adapter: Adapter) -> Actor:
    return make_member(adapter.tenant, Role.UPLOADER)


def push(actor: Actor, adapter: Adapter, files: dict[str, bytes]) -> str:
    return push_files(actor, str(adapter), files)


def cut(actor: Actor, adapter: Adapter, name: str = "v1") -> Version:
    repo = find_repo(actor=actor, tenant="acme", name=adapter.name)
    return cut_version(actor=actor, repo=repo, name=name, revision=MAIN)


def stored(tmp_path: Path) -> int:
    return sum(path.is_file() for path in (tmp_path / "store" / "artifacts").rglob("*"))


def test_a_draft_that_is_left_alone_goes_with_its_bytes(
    uploader: Actor, adapter: Adapter, settings: Any, tmp_path: Path
) -> None:
    push(uploader, adapter, {"README.md": b"1"})
    push(uploader, adapter, {"README.md": b"2"})
    sweep_all()
    assert stored(tmp_path) == 2
    HubDraft.objects.update(changed_at=timezone.now() - timedelta(seconds=settings.HUB_DRAFT_TTL_S + 1))
    sweep_all()
    assert stored(tmp_path) == 0
    assert not HubCommit.objects.exists()
    record = AuditRecord.objects.get(action="tenant:draft:remove")
    assert record.actor["id"] == "sweep"
    assert record.reason


def test_a_commit_that_was_built_upon_goes_before_its_draft(
    uploader: Actor, adapter: Adapter, settings: Any, tmp_path: Path
) -> None:
    push(uploader, adapter, {"README.md": b"1", "kept.md": b"kept"})
    push(uploader, adapter, {"README.md": b"2"})
    settings.HUB_DRAFT_TTL_S = 0
    for commit_id in superseded_commits():
        drop_commit(commit_id=commit_id)
    assert HubCommit.objects.count() == 1
    assert stored(tmp_path) == 2


def test_the_branch_at_a_commit_keeps_it(uploader: Actor, adapter: Adapter) -> None:
    push(uploader, adapter, {"README.md": b"1"})
    drop_commit(commit_id=HubCommit.objects.get().pk)
    assert HubFile.objects.count() == 1


def test_a_draft_that_went_on_meanwhile_is_not_removed(uploader: Actor, adapter: Adapter, settings: Any) -> None:
    push(uploader, adapter, {"README.md": b"1"})
    HubDraft.objects.update(changed_at=timezone.now() - timedelta(seconds=settings.HUB_DRAFT_TTL_S + 1))
    (stale,) = stale_drafts()
    push(uploader, adapter, {"README.md": b"2"})
    expire_draft(actor=SYSTEM, draft_id=stale)
    assert HubDraft.objects.exists()
    expire_draft(actor=SYSTEM, draft_id=0)


def test_one_person_has_so_many_branches_and_no_more(
    uploader: Actor, adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "MAX_BRANCHES", 2)
    push(uploader, adapter, {"README.md": b"1"})
    repo = find_repo(actor=uploader, tenant="acme", name=adapter.name)
    create_branch(actor=uploader, repo=repo, branch="one", start=MAIN)
    with pytest.raises(WrongState, match="Delete one first"):
        create_branch(actor=uploader, repo=repo, branch="two", start=MAIN)


def test_a_push_keeps_its_draft_from_expiring_meanwhile(uploader: Actor, adapter: Adapter, settings: Any) -> None:
    push(uploader, adapter, {"README.md": b"1"})
    HubDraft.objects.update(changed_at=timezone.now() - timedelta(seconds=settings.HUB_DRAFT_TTL_S + 1))
    repo = find_repo(actor=uploader, tenant="acme", name=adapter.name)
    draft = find_draft(actor=uploader, repo=repo, branch=MAIN)
    expire_draft(actor=SYSTEM, draft_id=draft.pk)
    assert HubDraft.objects.get() == draft


def test_a_push_to_a_branch_that_is_deleted_meanwhile_says_so(
    uploader: Actor, adapter: Adapter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def gone(*_arguments: object, **_options: object) -> Iterator[Header]:
        remove_draft(actor=SYSTEM, draft_id=HubDraft.objects.get().pk, reason="")
        yield Header(title="", description="", parent=None)

    monkeypatch.setattr(commits, "read_operations", gone)
    with pytest.raises(RevisionNotFound, match="deleted while you pushed"):
        push(uploader, adapter, {"README.md": b"1"})


def test_a_version_keeps_the_bytes_of_the_draft_it_was_cut_of(
    uploader: Actor, adapter: Adapter, settings: Any, tmp_path: Path
) -> None:
    push(uploader, adapter, adapter_files())
    cut(uploader, adapter)
    settings.HUB_DRAFT_TTL_S = 0
    expire_draft(actor=SYSTEM, draft_id=HubDraft.objects.get().pk)
    assert stored(tmp_path) == 2


def test_a_draft_keeps_the_bytes_of_a_version_that_was_rejected(
    uploader: Actor, adapter: Adapter, tmp_path: Path
) -> None:
    push(uploader, adapter, adapter_files())
    version = cut(uploader, adapter)
    move_version(version, was=VersionState.VALIDATING, to=VersionState.REJECTED)
    purge_version(version_id=version.pk)
    assert stored(tmp_path) == 2
    assert cut(uploader, adapter, "v2").state == VersionState.VALIDATING


def test_a_base_revision_named_in_the_config_is_taken_and_else_the_newest(uploader: Actor, adapter: Adapter) -> None:
    make_base_revision(base_model=adapter.base_model, label="r2")
    push(uploader, adapter, adapter_files(revision="r1"))
    assert cut(uploader, adapter).base_revision.label == "r1"
    push(uploader, adapter, adapter_files(revision="gone"))
    assert cut(uploader, adapter, "v2").base_revision.label == "r2"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE registry_hubcommit SET tree_digest = repeat('0', 64)",
        "UPDATE registry_hubfile SET path = 'b.md'",
        "INSERT INTO registry_hubfile (commit_id, path, artifact_id) SELECT commit_id, 'b', 1 FROM registry_hubfile",
    ],
)
def test_a_sealed_commit_never_changes(uploader: Actor, adapter: Adapter, statement: str) -> None:
    push(uploader, adapter, {"README.md": b"1"})
    with pytest.raises(IntegrityError, match="never change"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_bytes_that_the_store_lost_are_told_when_a_version_is_cut(
    uploader: Actor, adapter: Adapter, store: Any
) -> None:
    push(uploader, adapter, adapter_files())
    for path in ("adapter_model.safetensors", "adapter_config.json"):
        lost = Artifact.objects.get(hub_files__path=path)
        store.delete(object_key(tenant="acme", sha256=lost.sha256))
        with pytest.raises(UploadIncomplete, match=path):
            cut(uploader, adapter)
    push(uploader, adapter, adapter_files())
    assert cut(uploader, adapter).state == VersionState.VALIDATING


def test_a_push_to_a_branch_that_is_deleted_while_its_bytes_come_leaves_none_of_them(
    uploader: Actor, adapter: Adapter, store: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put = type(store).put_stream

    def late(*arguments: Any, **options: Any) -> None:
        remove_draft(actor=SYSTEM, draft_id=HubDraft.objects.get().pk, reason="")
        put(*arguments, **options)

    monkeypatch.setattr(type(store), "put_stream", late)
    with pytest.raises(RevisionNotFound, match="deleted while you pushed"):
        push(uploader, adapter, {"README.md": b"1"})
    assert stored(tmp_path) == 0


def test_a_push_of_files_to_a_branch_that_is_gone_says_so(
    uploader: Actor, adapter: Adapter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def gone(*arguments: Any, **options: Any) -> Iterator[Any]:
        remove_draft(actor=SYSTEM, draft_id=HubDraft.objects.get().pk, reason="")
        yield from read_operations(*arguments, **options)

    monkeypatch.setattr(commits, "read_operations", gone)
    with pytest.raises(RevisionNotFound, match="deleted while you pushed"):
        push(uploader, adapter, {"README.md": b"1"})
    assert stored(tmp_path) == 0


def test_a_manifest_with_a_wrong_size_spoils_no_push(
    uploader: Actor, adapter: Adapter, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, while or after it comes: whoever knows the digest could say that the file has another size."""
    files = adapter_files()
    wrong = [SignedFile(path=file["path"], size=1, sha256=file["sha256"]) for file in manifest_of(files)]
    other = make_member(adapter.tenant, Role.UPLOADER)
    start_upload(actor=other, adapter=adapter, base_revision="r1", files=wrong[:1])
    put = type(store).put_stream

    def meanwhile(*arguments: Any, **options: Any) -> None:
        if not Artifact.objects.filter(stored_at__isnull=False).exists():
            start_upload(actor=other, adapter=adapter, base_revision="r1", files=wrong)
        put(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "put_stream", meanwhile)
        push(uploader, adapter, files)
    with pytest.raises(InvalidInput, match="another size"):
        start_upload(actor=other, adapter=adapter, base_revision="r1", files=wrong[1:])
    assert cut(uploader, adapter).state == VersionState.VALIDATING
    assert {file.artifact.size for file in HubFile.objects.all()} == {len(content) for content in files.values()}


def test_of_two_base_models_the_one_with_the_whole_name_is_taken(uploader: Actor, adapter: Adapter) -> None:
    for name in ("other", "org-other"):
        make_base_revision(label="r1", base_model=BaseModel.objects.create(name=name))
    create_repo(actor=uploader, tenant=adapter.tenant, name="new")
    push_files(uploader, "acme/new", adapter_files(base_model_name_or_path="org/other"))
    repo = find_repo(actor=uploader, tenant="acme", name="new")
    version = cut_version(actor=uploader, repo=repo, name="v1", revision=MAIN)
    assert version.adapter.base_model.name == "org-other"


def test_the_audit_log_says_what_a_branch_begins_with(uploader: Actor, adapter: Adapter) -> None:
    commit = push(uploader, adapter, {"README.md": b"1"})
    repo = find_repo(actor=uploader, tenant="acme", name=adapter.name)
    draft = create_branch(actor=uploader, repo=repo, branch="next", start=commit)
    record = AuditRecord.objects.filter(action="tenant:draft:push").latest("seq")
    assert record.object["name"].endswith(":next")
    assert record.after == {"commit": resolve_revision(actor=uploader, repo=repo, revision="next").commit}
    assert draft.head is not None


def test_a_full_disk_is_not_the_pushers_fault_and_leaves_nothing(
    uploader: Actor, adapter: Adapter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any, /) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("registry.hub.blobs.tempfile.SpooledTemporaryFile", lambda **_options: Full())
    with pytest.raises(StoreUnavailable):
        push(uploader, adapter, {"README.md": b"1"})
    assert not HubCommit.objects.exists()
    assert stored(tmp_path) == 0


def test_a_file_that_comes_and_goes_in_one_push_leaves_no_bytes(
    uploader: Actor, adapter: Adapter, tmp_path: Path
) -> None:
    body = commit_body(added("a.md", b"a"), added("b.md", b"b"), {"key": "deletedFile", "value": {"path": "a.md"}})
    repo = find_repo(actor=uploader, tenant="acme", name=adapter.name)
    commits.commit_push(actor=uploader, repo=repo, branch=MAIN, source=io.BytesIO(body), length=len(body))
    assert [file.path for file in HubFile.objects.all()] == ["b.md"]
    assert stored(tmp_path) == 1
