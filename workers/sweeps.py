"""Repairs: every state that can stall is looked at again, so a lost message or a killed process heals by itself."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from uuid import UUID

from cachecontrol.services.reconcile import sweep_residencies
from cachecontrol.services.requests.retention import tend_request_records
from registry.actors import system_actor
from registry.services.hub.expiry import drop_commit, expire_draft, stale_drafts, superseded_commits
from registry.services.idempotency import forget_old_answers
from registry.services.people.sessions import forget_old_sessions
from registry.services.purges import purged_with_bytes, remove_bytes_of_purged
from registry.services.retention import due_retentions, sweep_retention
from registry.services.routing import forget_old_changes
from registry.services.transfers.parts import abandoned_uploads_in_parts, abort_upload_in_parts
from registry.services.validation import (
    abandoned_uploads,
    expire_upload,
    purge_version,
    send_revalidation_again,
    send_validation_again,
    stalled_revalidations,
    stalled_validations,
    unpurged_rejections,
)
from registry.services.webhooks.deliveries import forget_old_deliveries
from registry.stores.errors import StoreUnavailable

logger = logging.getLogger(__name__)


def sweep_all() -> None:
    """One pass over everything that can stall. One thing's trouble stops neither the others nor what comes after."""
    sweep_residencies()
    _forget()
    for version_id in stalled_validations():
        with _on_its_own(version_id):
            send_validation_again(version_id=version_id)
    for revalidation_id in stalled_revalidations():
        with _on_its_own(revalidation_id):
            send_revalidation_again(revalidation_id=revalidation_id)
    for version_id in abandoned_uploads():
        with _on_its_own(version_id):
            expire_upload(actor=system_actor("sweep"), version_id=version_id)
    try:
        _sweep_bytes()
    except StoreUnavailable as error:
        logger.warning("the store is away, the next sweep goes on purging: %s", error)


def _forget() -> None:
    """Rows that nobody needs any more."""
    tend = partial(tend_request_records, actor=system_actor("retention"))
    for what, act in (
        ("answers kept for retries", forget_old_answers),
        ("routing changes", forget_old_changes),
        ("webhook deliveries", forget_old_deliveries),
        ("sessions", forget_old_sessions),
        ("request records", tend),
    ):
        with _on_its_own(what):
            act()


def _sweep_bytes() -> None:
    """What begins or goes on to remove bytes; all of it waits when the store is away."""
    for upload_id in abandoned_uploads_in_parts():
        with _on_its_own(upload_id):
            abort_upload_in_parts(upload_id=upload_id)
    for version_id in unpurged_rejections():
        with _on_its_own(version_id):
            purge_version(version_id=version_id)
    for version_id in purged_with_bytes():
        with _on_its_own(version_id):
            remove_bytes_of_purged(version_id=version_id)
    for draft_id in stale_drafts():
        with _on_its_own(draft_id):
            expire_draft(actor=system_actor("sweep"), draft_id=draft_id)
    for commit_id in superseded_commits():
        with _on_its_own(commit_id):
            drop_commit(commit_id=commit_id)
    for policy_id in due_retentions():
        with _on_its_own(policy_id):
            sweep_retention(actor=system_actor("retention"), policy_id=policy_id)


@contextmanager
def _on_its_own(which: UUID | int | str) -> Iterator[None]:
    """Whatever goes wrong with one of them is logged; only a store that is away would go wrong with every one."""
    try:
        yield
    except StoreUnavailable:
        raise
    except Exception:
        logger.exception("%s (version, re-run, upload, draft, policy, old rows) is left to the next sweep", which)
