"""The end of what was pushed: drafts that nobody touched for long, pushes that broke off, and commits built upon."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.hub.names import EMPTY_COMMIT
from registry.models import HubCommit, HubDraft, HubFile
from registry.services.hub.trees import draft_commit
from registry.services.purges import release_artifacts

# How many of one kind a sweep looks at; the rest are left to the next one.
MAX_SWEPT: Final = 100


@transaction.atomic
def expire_draft(*, actor: Actor, draft_id: int) -> None:
    """Remove a draft that was left alone for its time to live. Quiet if it is gone, or went on meanwhile."""
    draft = HubDraft.objects.select_for_update(of=("self",), no_key=True).filter(pk=draft_id).first()
    if draft is not None and draft.changed_at < _long_ago():
        remove_draft(actor=actor, draft_id=draft_id, reason=_("Nothing was pushed to it for a long time."))


@transaction.atomic
def remove_draft(*, actor: Actor, draft_id: int, reason: str) -> None:
    """Remove a draft with its commits, and the bytes that nothing else needs; the caller has checked the permission."""
    draft = HubDraft.objects.select_for_update(of=("self",), no_key=True).filter(pk=draft_id).first()
    if draft is None:
        return
    # A push notes each file under its commit's lock: so none comes while they go.
    list(HubCommit.objects.select_for_update(of=("self",), no_key=True).filter(draft=draft).values_list("pk"))
    was = draft_commit(draft.head) if draft.head else EMPTY_COMMIT
    events.draft_removed(actor=actor, draft=draft, was=was, reason=reason)
    held = list(HubFile.objects.filter(commit__draft=draft).values_list("artifact_id", flat=True).distinct())
    HubFile.objects.filter(commit__draft=draft).delete()
    draft.delete()
    release_artifacts(held)


@transaction.atomic
def drop_commit(*, commit_id: UUID, arrived: Iterable[int] = ()) -> None:
    """Remove a commit that no branch is at, and the bytes that nothing else needs. Quiet otherwise.

    ``arrived`` are the artifacts that came for it: the branch may be gone, and the commit with it, before they did.
    """
    commit = HubCommit.objects.select_for_update(of=("self",), no_key=True).filter(pk=commit_id).first()
    held = set(arrived)
    if commit is not None:
        if HubDraft.objects.filter(head=commit).exists():
            return
        held |= set(commit.files.values_list("artifact_id", flat=True))
        commit.files.all().delete()
        commit.delete()
    release_artifacts(held)


def stale_drafts() -> list[int]:
    """Drafts that nobody pushed to for their time to live, the longest forgotten first."""
    drafts = HubDraft.objects.filter(changed_at__lt=_long_ago()).order_by("changed_at")
    return list(drafts.values_list("pk", flat=True)[:MAX_SWEPT])


def superseded_commits() -> list[UUID]:
    """Commits that were built upon or never sealed, and are as old as that."""
    is_head = Exists(HubDraft.objects.filter(head=OuterRef("pk")))
    old = HubCommit.objects.filter(~is_head, created_at__lt=_long_ago()).order_by("created_at")
    return list(old.values_list("pk", flat=True)[:MAX_SWEPT])


def _long_ago() -> datetime:
    return timezone.now() - timedelta(seconds=settings.HUB_DRAFT_TTL_S)
