"""Repairs: every state that can stall is looked at again, so a lost message or a killed process heals by itself."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from cachecontrol.services.reconcile import sweep_residencies
from registry.actors import system_actor
from registry.services.validation import (
    abandoned_uploads,
    expire_upload,
    purge_version,
    send_validation_again,
    stalled_validations,
    unpurged_rejections,
)
from registry.stores.errors import StoreUnavailable

logger = logging.getLogger(__name__)


def sweep_all() -> None:
    """One pass over everything that can stall. One thing's trouble stops neither the others nor what comes after."""
    sweep_residencies()
    for version_id in stalled_validations():
        with _on_its_own(version_id):
            send_validation_again(version_id=version_id)
    for version_id in abandoned_uploads():
        with _on_its_own(version_id):
            expire_upload(actor=system_actor("sweep"), version_id=version_id)
    try:
        for version_id in unpurged_rejections():
            with _on_its_own(version_id):
                purge_version(version_id=version_id)
    except StoreUnavailable as error:
        logger.warning("the store is away, the next sweep goes on purging: %s", error)


@contextmanager
def _on_its_own(version_id: UUID) -> Iterator[None]:
    """Whatever goes wrong with one version is logged; only a store that is away would go wrong with every one."""
    try:
        yield
    except StoreUnavailable:
        raise
    except Exception:
        logger.exception("version %s is left to the next sweep", version_id)
