"""A push: its files go to the store one by one as they come, and the branch moves at the end.

What has come belongs to a commit that is not sealed yet, so a push that is killed anywhere leaves nothing that the
sweep doesn't find.
"""

from dataclasses import dataclass, field
from typing import BinaryIO, cast

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import EntryNotFound, InvalidInput, PayloadTooLarge, PreconditionFailed, RevisionNotFound
from registry.hub.blobs import Blob
from registry.hub.names import MAIN, is_left_out
from registry.hub.operations import (
    AddFile,
    CopyFile,
    DeleteFile,
    DeleteFolder,
    Header,
    Operation,
    read_operations,
)
from registry.models import Artifact, HubCommit, HubDraft, HubFile
from registry.naming import check_file_kind, check_manifest_paths, check_path, object_key
from registry.permissions import Action, require_in_tenant
from registry.services.hub.drafts import find_draft
from registry.services.hub.expiry import drop_commit
from registry.services.hub.repos import Repo
from registry.services.hub.revisions import main_tree
from registry.services.hub.sealing import Files, hold_tree, move_draft, seal_commit
from registry.services.hub.trees import Tree, draft_tree, empty_tree
from registry.services.purges import release_artifacts
from registry.services.stores import artifact_store

Change = AddFile | CopyFile | DeleteFile | DeleteFolder


@dataclass(slots=True)
class _Push:
    """What has come of a push so far."""

    commit: HubCommit
    header: Header | None = None
    changes: list[Change] = field(default_factory=list)
    arrived: Files = field(default_factory=dict)


def commit_push(*, actor: Actor, repo: Repo, branch: str, source: BinaryIO, length: int) -> str:
    """Take in a push (NDJSON, ``length`` bytes) on the caller's draft of ``branch``; returns the id of its commit.

    Raises:
        InvalidInput: a line or a path that can't be accepted; names the path. The branch stays as it was.
        PreconditionFailed: the commit it builds on is not the branch's newest.
        PayloadTooLarge: more bytes than a version may have.

    """
    require_in_tenant(actor, Action.UPLOAD_VERSION, repo.tenant.pk)
    push = _begin(actor, repo, branch)
    try:
        for operation in read_operations(source, length=length, limit=settings.MAX_VERSION_BYTES):
            _take(repo, push, operation)
        return _seal(actor, repo, push)
    except Exception:
        drop_commit(commit_id=push.commit.pk, arrived=[artifact.pk for artifact in push.arrived.values()])
        raise


def check_pushed_path(path: str) -> None:
    """Raise ``InvalidInput`` for a path or a kind of file that no adapter has."""
    check_path(path)
    check_file_kind(path)


@transaction.atomic
def _begin(actor: Actor, repo: Repo, branch: str) -> _Push:
    # The branch stays locked until its commit is there: whoever removes the one takes the other along.
    return _Push(commit=HubCommit.objects.create(draft=find_draft(actor=actor, repo=repo, branch=branch)))


def _take(repo: Repo, push: _Push, operation: Operation) -> None:
    if isinstance(operation, Header):
        push.header = operation
        return
    if isinstance(operation, AddFile):
        _keep(repo, push, operation)
    push.changes.append(operation)


def _keep(repo: Repo, push: _Push, added: AddFile) -> None:
    """Note which bytes come, then put them in the store: bytes that nothing speaks of would never be found again."""
    path, blob = added.path, added.blob
    if is_left_out(path):
        raise InvalidInput(_("%(path)s is not kept: leave it out.") % {"path": path}, field=path)
    check_pushed_path(path)
    if path in push.arrived:
        raise InvalidInput(_("%(path)s comes twice in the commit.") % {"path": path}, field=path)
    artifact = push.arrived[path] = _note(repo, push, path, blob)
    key = object_key(tenant=repo.tenant.name, sha256=blob.sha256)
    artifact_store().put_stream(key, cast("BinaryIO", blob.file), size=blob.size, sha256=blob.sha256)
    # A manifest may have been wrong about the size; from now on none can be.
    artifact.size = blob.size
    Artifact.objects.filter(pk=artifact.pk, stored_at=None).update(size=blob.size, stored_at=timezone.now())


@transaction.atomic
def _note(repo: Repo, push: _Push, path: str, blob: Blob) -> Artifact:
    if HubCommit.objects.select_for_update(of=("self",), no_key=True).filter(pk=push.commit.pk).first() is None:
        raise _branch_gone()
    known = Artifact.objects.get_or_create(tenant=repo.tenant, sha256=blob.sha256, defaults={"size": blob.size})[0]
    # Whoever deletes these bytes for want of others that need them has the row's lock until they are gone.
    artifact = Artifact.objects.select_for_update(of=("self",), no_key=True).get(pk=known.pk)
    HubFile.objects.create(commit=push.commit, path=path, artifact=artifact)
    return artifact


@transaction.atomic
def _seal(actor: Actor, repo: Repo, push: _Push) -> str:
    """Join what came with what was there, and move the branch."""
    header = push.header
    if header is None:
        raise InvalidInput(_("The commit is empty: its first line is a header."))
    draft = HubDraft.objects.select_for_update(of=("self",), no_key=True).filter(pk=push.commit.draft_id).first()
    if draft is None:
        raise _branch_gone()
    base, before = hold_tree(lambda: _base_of(actor, repo, draft), tenant=repo.tenant)
    if header.parent is not None and header.parent != base.commit:
        raise PreconditionFailed(
            _("A commit has happened since: %(branch)s is at %(commit)s. Read it again and repeat your push.")
            % {"branch": draft.branch, "commit": base.commit},
            field="parentCommit",
        )
    files = _replay(before, push)
    _check_whole(files)
    if files == before:
        drop_commit(commit_id=push.commit.pk)
        return base.commit
    seal_commit(push.commit, files=files, parent=base.commit, title=header.title, description=header.description)
    # What came and went again in one push.
    release_artifacts(artifact.pk for artifact in set(push.arrived.values()) - set(files.values()))
    return move_draft(actor=actor, draft=draft, to=push.commit)


def _branch_gone() -> RevisionNotFound:
    return RevisionNotFound(_("The branch was deleted while you pushed to it."), field="revision")


def _base_of(actor: Actor, repo: Repo, draft: HubDraft) -> Tree:
    """What the branch holds now: its own commit or, before the first one, what ``main`` means to everybody."""
    if draft.head is not None:
        return draft_tree(draft.head)
    main = main_tree(actor=actor, repo=repo) if draft.branch == MAIN else None
    return main or empty_tree(author=actor.id)


def _replay(files: Files, push: _Push) -> Files:
    """The files after the operations, each in its turn."""
    known = {artifact.sha256: artifact for artifact in files.values()}
    now = dict(files)
    for change in push.changes:
        match change:
            case AddFile(path=path):
                now[path] = push.arrived[path]
            case CopyFile(path=path, sha256=sha256) if sha256 in known:
                check_pushed_path(path)
                now[path] = known[sha256]
            case DeleteFile(path=path) if path in now:
                del now[path]
            case DeleteFolder(path=path) if any(name.startswith(f"{path}/") for name in now):
                now = {name: artifact for name, artifact in now.items() if not name.startswith(f"{path}/")}
            case _:
                raise EntryNotFound(
                    _("A file with this name doesn't exist: %(path)s.") % {"path": change.path}, field=change.path
                )
    return now


def _check_whole(files: Files) -> None:
    if files:
        check_manifest_paths(list(files))
    if sum(artifact.size for artifact in files.values()) > settings.MAX_VERSION_BYTES:
        raise PayloadTooLarge(
            _("The files are larger than the limit of %(limit)d bytes together.")
            % {"limit": settings.MAX_VERSION_BYTES}
        )
