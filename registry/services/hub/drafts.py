"""Drafts: the branches of one person that pushes go to, until a version is cut of them."""

from typing import Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import NameTaken, PermissionDenied, RevisionNotFound, WrongState
from registry.hub.names import MAIN, check_branch
from registry.models import Adapter, HubCommit, HubDraft, Tenant, Version
from registry.naming import check_name
from registry.permissions import Action, require_in_tenant
from registry.services.hub.expiry import remove_draft
from registry.services.hub.repos import Repo, own_draft, own_drafts
from registry.services.hub.revisions import resolve_revision
from registry.services.hub.sealing import hold_tree, move_draft, seal_commit
from registry.services.hub.trees import Tree, draft_tree

# Of one person in one repository.
MAX_BRANCHES: Final = 100


@transaction.atomic
def create_repo(*, actor: Actor, tenant: Tenant, name: str) -> HubDraft:
    """Begin a repository of the caller's own; it becomes an adapter when the first version is cut of it.

    Raises:
        NameTaken: there is such an adapter, or the caller began this before.

    """
    require_in_tenant(actor, Action.CREATE_ADAPTER, tenant.pk)
    check_name(name, field="name")
    repo = Repo(tenant=tenant, name=name, pinned=None, adapter=None)
    if Adapter.objects.filter(tenant=tenant, name=name).exists() or own_draft(actor=actor, repo=repo):
        raise NameTaken(_("You already have a repository named %(name)s.") % {"name": name}, field="name")
    return _begin(actor, repo, MAIN)[0]


def require_branch(*, actor: Actor, repo: Repo, branch: str) -> HubDraft | None:
    """The caller's draft of ``branch``; None for ``main`` before anything was pushed to it.

    Raises:
        RevisionNotFound: the caller has no such branch.
        WrongState: this is a version's name.

    """
    draft = own_draft(actor=actor, repo=repo, branch=branch)
    if draft is None and branch != MAIN:
        _refuse_version(repo, branch)
        raise RevisionNotFound(
            _("You have no branch named %(branch)s. Create it first.") % {"branch": branch}, field="revision"
        )
    return draft


@transaction.atomic
def find_draft(*, actor: Actor, repo: Repo, branch: str) -> HubDraft:
    """The caller's draft of ``branch`` to push to; that of ``main`` begins by itself.

    Raises:
        RevisionNotFound, WrongState: as ``require_branch`` says.

    """
    draft = require_branch(actor=actor, repo=repo, branch=branch)
    # From here on the sweep leaves it alone; it may have taken it in this moment.
    is_there = draft is not None and HubDraft.objects.filter(pk=draft.pk).update(changed_at=timezone.now())
    return draft if draft is not None and is_there else _begin(actor, repo, branch)[0]


def pushed_tree(*, actor: Actor, repo: Repo, revision: str) -> Tree:
    """What ``revision`` means to who pushes: their own draft first, even where ``main`` stands for the alias."""
    draft = own_draft(actor=actor, repo=repo, branch=revision)
    if draft is not None and draft.head is not None:
        return draft_tree(draft.head)
    return resolve_revision(actor=actor, repo=repo, revision=revision)


@transaction.atomic
def create_branch(*, actor: Actor, repo: Repo, branch: str, start: str) -> HubDraft:
    """Begin a branch of the caller's own with the files of the revision ``start``.

    Raises:
        NameTaken: the caller has this branch already.
        RevisionNotFound: there is no such revision to start from.
        WrongState: this is a version's name, or the caller has too many branches here.

    """
    require_in_tenant(actor, Action.UPLOAD_VERSION, repo.tenant.pk)
    check_branch(branch)
    _refuse_version(repo, branch)
    if own_draft(actor=actor, repo=repo, branch=branch) is not None:
        raise _branch_taken(branch)
    if own_drafts(actor=actor, repo=repo).count() >= MAX_BRANCHES:
        raise WrongState(
            _("You have %(most)d branches here. Delete one first.") % {"most": MAX_BRANCHES}, field="branch"
        )
    tree, files = hold_tree(lambda: pushed_tree(actor=actor, repo=repo, revision=start), tenant=repo.tenant)
    draft, is_new = _begin(actor, repo, branch)
    if not is_new:
        raise _branch_taken(branch)
    if files:
        commit = HubCommit.objects.create(draft=draft)
        seal_commit(commit, files=files, parent=tree.commit, title=tree.title)
        move_draft(actor=actor, draft=draft, to=commit)
    return draft


@transaction.atomic
def delete_branch(*, actor: Actor, repo: Repo, branch: str) -> None:
    """Throw a branch of the caller's away, with what was pushed to it.

    Raises:
        WrongState: this is ``main``.
        RevisionNotFound: the caller has no such branch.

    """
    require_in_tenant(actor, Action.UPLOAD_VERSION, repo.tenant.pk)
    if branch == MAIN:
        raise WrongState(_("The branch main can't be deleted."), field="branch")
    draft = own_draft(actor=actor, repo=repo, branch=branch)
    if draft is None:
        raise RevisionNotFound(_("You have no branch named %(branch)s.") % {"branch": branch}, field="branch")
    remove_draft(actor=actor, draft_id=draft.pk, reason="")


@transaction.atomic
def delete_repo(*, actor: Actor, repo: Repo) -> None:
    """Throw away all that the caller pushed. Raises ``WrongState`` for an adapter: its versions are never deleted."""
    require_in_tenant(actor, Action.UPLOAD_VERSION, repo.tenant.pk)
    if repo.adapter is not None:
        raise WrongState(_("An adapter is never deleted. Yank or revoke its versions instead."), field="name")
    for draft in own_drafts(actor=actor, repo=repo):
        remove_draft(actor=actor, draft_id=draft.pk, reason="")


def _branch_taken(branch: str) -> NameTaken:
    return NameTaken(_("You already have a branch named %(branch)s.") % {"branch": branch}, field="branch")


def _begin(actor: Actor, repo: Repo, branch: str) -> tuple[HubDraft, bool]:
    """The caller's draft of ``branch``, and whether it was made now: another request may have just made it."""
    if actor.person_id is None:
        raise PermissionDenied(_("Only a person's token uploads, so that four eyes can be told apart."))
    draft, created = HubDraft.objects.select_related("head").get_or_create(
        tenant=repo.tenant,
        adapter_name=repo.name,
        branch=branch,
        owner_id=actor.person_id,
        defaults={"changed_at": timezone.now()},
    )
    if created:
        events.draft_begun(actor=actor, draft=draft)
    return draft, created


def _refuse_version(repo: Repo, branch: str) -> None:
    if Version.objects.filter(adapter=repo.adapter, name=branch).exists():
        raise WrongState(
            _("%(name)s is a version, which never changes. Push to a branch.") % {"name": branch}, field="revision"
        )
