"""What a revision's name means to somebody: a commit, a version, an alias, or a branch of their own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import RevisionNotFound
from registry.hub.names import EMPTY_COMMIT, MAIN, identity_in, is_commit_id
from registry.models import HubCommit, Version
from registry.permissions import Action, allows_in_tenant
from registry.ports import PORTS
from registry.selectors import MAX_LISTED, main_target, versions_with_relations
from registry.services.hub.repos import Repo, own_draft, own_drafts
from registry.services.hub.trees import Tree, draft_commit, draft_tree, empty_tree, version_commit, version_tree
from registry.states import VersionState

# What everybody may read who may see the tenant: engines load nothing else.
_FOR_ALL: Final = (VersionState.APPROVED.value, VersionState.YANKED.value)
# What the uploader may read besides, to see what was pushed.
_FOR_UPLOADER: Final = (VersionState.VALIDATING.value, VersionState.CANDIDATE.value)
_MAX_HISTORY: Final = 100


@dataclass(frozen=True, slots=True)
class Ref:
    name: str
    commit: str


@dataclass(frozen=True, slots=True)
class Refs:
    branches: tuple[Ref, ...]
    tags: tuple[Ref, ...]


def resolve_revision(*, actor: Actor, repo: Repo, revision: str) -> Tree:
    """The files that ``revision`` names to the caller.

    Raises:
        RevisionNotFound: there is no such thing, or no more: revoked versions are gone for every reader.

    """
    tree = _pinned(actor, repo, revision) if repo.pinned else _named(actor, repo, revision)
    if tree is None:
        raise RevisionNotFound(
            _("%(repo)s has no revision %(revision)s that you may read. It may have been revoked.")
            % {"repo": repo, "revision": revision},
            field="revision",
        )
    return tree


def list_refs(*, actor: Actor, repo: Repo) -> Refs:
    """Aliases and the caller's own branches as branches, versions as tags."""
    if repo.pinned:
        tree = resolve_revision(actor=actor, repo=repo, revision=MAIN)
        return Refs(branches=(Ref(MAIN, tree.commit),), tags=(Ref(repo.pinned, tree.commit),))
    versions = list(readable_versions(actor, repo)[:MAX_LISTED])
    commits = {version.pk: version_commit(version) for version in versions}
    own = own_drafts(actor=actor, repo=repo)
    branches = {draft.branch: draft_commit(draft.head) if draft.head else EMPTY_COMMIT for draft in own}
    # Last, and over all others: an alias may itself be called main.
    aliases = _aliases(repo)
    targets = {**aliases, MAIN: _main_target(repo, aliases)}
    branches |= {name: commits[target] for name, target in targets.items() if target in commits}
    return Refs(
        branches=tuple(Ref(name, commit) for name, commit in sorted(branches.items())),
        tags=tuple(Ref(version.name, commits[version.pk]) for version in versions),
    )


def list_history(*, actor: Actor, repo: Repo, revision: str) -> list[Tree]:
    """The revision and, of a draft, the commits before it that are still kept; the newest first."""
    tree = resolve_revision(actor=actor, repo=repo, revision=revision)
    return [tree, *_parents(actor, repo, tree)] if tree.at else []


def readable_versions(actor: Actor, repo: Repo) -> "QuerySet[Version]":
    """The versions whose files the caller may have over this API, the newest first."""
    states = Q(state__in=_FOR_ALL) | Q(state__in=_FOR_UPLOADER, uploader_id=actor.person_id)
    versions = versions_with_relations().filter(states, adapter=repo.adapter, purged_at__isnull=True)
    return versions.order_by("-created_at", "-name")


def main_tree(*, actor: Actor, repo: Repo) -> Tree | None:
    """What ``main`` means to readers, if it may be read."""
    target = _main_target(repo, _aliases(repo))
    return _version(actor, repo, target) if target else None


def _pinned(actor: Actor, repo: Repo, revision: str) -> Tree | None:
    version = readable_versions(actor, repo).filter(name=repo.pinned).first()
    if version is None or revision not in {MAIN, version.name, version_commit(version)}:
        return None
    return version_tree(version)


def _named(actor: Actor, repo: Repo, revision: str) -> Tree | None:
    """Commits first, then tags, then branches, as git does."""
    if is_commit_id(revision):
        return _commit(actor, repo, revision)
    if revision == MAIN:
        return _main(actor, repo)
    tagged = Version.objects.filter(adapter=repo.adapter, name=revision).values_list("pk", flat=True).first()
    target = tagged or _aliases(repo).get(revision)
    return _version(actor, repo, target) if target else _branch(actor, repo, revision)


def _main(actor: Actor, repo: Repo) -> Tree | None:
    target = _main_target(repo, _aliases(repo))
    if target is not None:
        return _version(actor, repo, target)
    return _branch(actor, repo, MAIN) or _empty(actor, repo)


def _version(actor: Actor, repo: Repo, version_id: UUID) -> Tree | None:
    version = readable_versions(actor, repo).filter(pk=version_id).first()
    return version_tree(version) if version else None


def _empty(actor: Actor, repo: Repo) -> Tree | None:
    """Clients look at what is there before they push, and have to find a repository without files."""
    may_push = allows_in_tenant(actor, Action.UPLOAD_VERSION, repo.tenant.pk)
    return empty_tree(author=actor.id) if may_push else None


def _branch(actor: Actor, repo: Repo, branch: str) -> Tree | None:
    draft = own_draft(actor=actor, repo=repo, branch=branch)
    if draft is None:
        return None
    return draft_tree(draft.head) if draft.head else empty_tree(author=actor.id)


def _commit(actor: Actor, repo: Repo, commit: str) -> Tree | None:
    if commit == EMPTY_COMMIT:
        return _empty(actor, repo)
    tree = _version(actor, repo, identity_in(commit))
    if tree is None:
        draft = _own_commits(actor, repo).filter(pk=identity_in(commit)).first()
        tree = draft_tree(draft) if draft else None
    return tree if tree and tree.commit == commit else None


def _own_commits(actor: Actor, repo: Repo) -> "QuerySet[HubCommit]":
    commits = HubCommit.objects.select_related("draft__owner").filter(sealed_at__isnull=False)
    return commits.filter(draft__in=own_drafts(actor=actor, repo=repo))


def _parents(actor: Actor, repo: Repo, tree: Tree) -> Iterator[Tree]:
    commits = _own_commits(actor, repo)
    commit = commits.filter(pk=identity_in(tree.commit)).first()
    for _step in range(_MAX_HISTORY):
        commit = commits.filter(pk=identity_in(commit.parent)).first() if commit else None
        if commit is None:
            return
        yield draft_tree(commit)


def _main_target(repo: Repo, aliases: dict[str, UUID]) -> UUID | None:
    return main_target(repo.adapter, aliases) if repo.adapter else None


def _aliases(repo: Repo) -> dict[str, UUID]:
    return PORTS.alias_targets(adapter_id=repo.adapter.pk) if repo.adapter else {}
