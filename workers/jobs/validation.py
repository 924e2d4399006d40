"""One validation run: fetch the bytes into a scratch folder, check them, record the report."""

import logging
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final
from uuid import UUID

from registry.actors import system_actor
from registry.base_models.description import BaseDescription
from registry.models import Version
from registry.naming import object_key
from registry.reports import StoredReport
from registry.selectors import get_version_by_id
from registry.services.stores import artifact_store
from registry.services.validation import record_validation
from registry.states import VersionState
from registry.stores.errors import ObjectMissing
from workers.validation import DeclaredFile, Limits, Report, check_folder

logger = logging.getLogger(__name__)
_SCRATCH: Final = "lorekeeper-validate-"
_ABANDONED_AFTER_S: Final = 2 * 3600
_MAX_KEPT_RANK: Final = 2**31 - 1


def validate_version(*, version_id: UUID) -> None:
    """Validate a version that waits for it; quiet when it was decided already."""
    version = get_version_by_id(version_id=version_id)
    if version.state != VersionState.VALIDATING:
        return
    _remove_abandoned()
    with tempfile.TemporaryDirectory(prefix=_SCRATCH) as scratch:
        folder = Path(scratch)
        _fetch(version, folder)
        report = _check(version, folder)
    record_validation(actor=system_actor("validate"), version_id=version_id, report=stored_report(report))


def _remove_abandoned() -> None:
    """A worker that was killed leaves its scratch folder behind; no run is older than its task's time limit."""
    oldest = time.time() - _ABANDONED_AFTER_S
    for folder in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        if folder.is_dir() and not folder.is_symlink() and folder.stat().st_mtime < oldest:
            logger.warning("removing %s, which a killed validation left behind", folder)
            shutil.rmtree(folder, ignore_errors=True)


def stored_report(report: Report) -> StoredReport:
    """A report in the form that the registry keeps."""
    return StoredReport(
        verdict=report.verdict.value,
        policy_version=report.policy_version,
        summary=" ".join(report.reasons),
        document=report.to_json(),
        digest=report.digest,
        rank=_kept_rank(report.facts.rank),
        target_modules=report.facts.target_modules,
    )


def _kept_rank(rank: int | None) -> int | None:
    """A refused upload may claim any rank; one that no column holds is left to the report."""
    return rank if rank is not None and rank <= _MAX_KEPT_RANK else None


def _fetch(version: Version, folder: Path) -> None:
    store, tenant = artifact_store(), version.adapter.tenant.name
    for file in version.files.select_related("artifact"):
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with store.open(object_key(tenant=tenant, sha256=file.artifact.sha256)) as source, target.open("xb") as out:
                shutil.copyfileobj(source, out, length=1024 * 1024)
        except ObjectMissing:
            # The check of declared files says so in its own words.
            target.unlink(missing_ok=True)


def _check(version: Version, folder: Path) -> Report:
    revision = version.base_revision
    declared = tuple(
        DeclaredFile(path=file.path, size=file.artifact.size, sha256=file.artifact.sha256)
        for file in version.files.select_related("artifact")
    )
    return check_folder(
        folder,
        declared=declared,
        base=BaseDescription.from_json(revision.description),
        limits=Limits(max_rank=revision.max_rank),
        base_names=(revision.base_model.name,),
    )
