"""Closing a commit over all its files, and moving a branch to it."""

from collections.abc import Callable

from django.utils import timezone
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import StaleState
from registry.hub.names import EMPTY_COMMIT
from registry.models import Artifact, HubCommit, HubDraft, HubFile, Tenant
from registry.services.hub.trees import Tree, draft_commit, tree_digest

# By path.
Files = dict[str, Artifact]


def hold_tree(find: Callable[[], Tree], *, tenant: Tenant) -> tuple[Tree, Files]:
    """What ``find`` finds, with its files locked for this transaction, so that nobody removes their bytes.

    Raises:
        StaleState: the revision moved in this moment.

    """
    tree = find()
    locked = Artifact.objects.select_for_update(of=("self",), no_key=True).filter(
        tenant=tenant, sha256__in={file.sha256 for file in tree.files}
    )
    artifacts = {artifact.sha256: artifact for artifact in locked.order_by("sha256")}
    # Whoever had the locks before may have removed the bytes, and with them what was found.
    if find() != tree:
        raise StaleState(_("The revision changed in this moment. Try again."), field="revision")
    return tree, {file.path: artifacts[file.sha256] for file in tree.files}


def seal_commit(commit: HubCommit, *, files: Files, parent: str, title: str = "", description: str = "") -> HubCommit:
    """Make ``files`` the commit's own and close it. Whatever else came for it is let go."""
    HubFile.objects.filter(commit=commit).delete()
    HubFile.objects.bulk_create(
        HubFile(commit=commit, path=path, artifact=artifact) for path, artifact in sorted(files.items())
    )
    commit.parent, commit.title, commit.description = parent, title, description
    commit.tree_digest = tree_digest({path: artifact.sha256 for path, artifact in files.items()})
    commit.sealed_at = timezone.now()
    commit.save(update_fields=["parent", "title", "description", "tree_digest", "sealed_at"])
    return commit


def move_draft(*, actor: Actor, draft: HubDraft, to: HubCommit) -> str:
    """Move the branch to a sealed commit; returns the commit's id."""
    was = draft_commit(draft.head) if draft.head else EMPTY_COMMIT
    draft.head, draft.changed_at = to, timezone.now()
    draft.save(update_fields=["head", "changed_at"])
    events.draft_moved(actor=actor, draft=draft, was=was, to=draft_commit(to))
    return draft_commit(to)
