"""Repairs: every state that can stall is looked at again, so a lost message or a killed process heals by itself."""

from registry import dispatch
from registry.actors import system_actor
from registry.services.validation import (
    abandoned_uploads,
    expire_upload,
    purge_version,
    stalled_validations,
    unpurged_rejections,
)
from workers.tasks.reconcile import sweep_residencies


def sweep_all() -> None:
    """One pass over everything that can stall."""
    for version_id in stalled_validations():
        dispatch.nudge(dispatch.VALIDATE_VERSION, version_id=str(version_id))
    for version_id in abandoned_uploads():
        expire_upload(actor=system_actor("sweep"), version_id=version_id)
    for version_id in unpurged_rejections():
        purge_version(version_id=version_id)
    sweep_residencies()
