"""One validation run: fetch the bytes into a scratch folder, check them, run them, record the report."""

import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

from django.conf import settings

from registry.actors import system_actor
from registry.base_models.description import BaseDescription
from registry.models import BaseModelRevision, Revalidation, Version
from registry.reports import ProbeReference, StoredReport
from registry.selectors import get_version_by_id
from registry.services.validation import (
    drop_vain_revalidation,
    record_revalidation,
    record_validation,
    say_revalidation_runs,
    say_validation_runs,
)
from registry.states import VersionState
from workers.evaluation.bases import SCRATCH, find_base
from workers.evaluation.errors import NotPossibleError
from workers.evaluation.findings import not_run
from workers.jobs.evaluation import Evaluated, evaluate_version
from workers.jobs.fetching import fetch_version
from workers.jobs.heartbeat import heartbeat
from workers.validation import DeclaredFile, Limits, Outcome, Report, check_folder
from workers.validation.device import cuda_device

logger = logging.getLogger(__name__)
_ABANDONED_AFTER_S: Final = 2 * 3600
_MAX_KEPT_RANK: Final = 2**31 - 1


def validate_version(*, version_id: UUID) -> None:
    """Validate a version that waits for it; quiet when it was decided already."""
    version = get_version_by_id(version_id=version_id)
    if version.state != VersionState.VALIDATING:
        return
    with heartbeat(partial(say_validation_runs, version_id=version_id)):
        report = _report_on(version)
    record_validation(actor=system_actor("validate"), version_id=version_id, report=report)


def revalidate_version(*, revalidation_id: int) -> None:
    """Validate a decided version once more; quiet when that was done already."""
    actor = system_actor("validate")
    if drop_vain_revalidation(actor=actor, revalidation_id=revalidation_id):
        return
    version = get_version_by_id(version_id=Revalidation.objects.get(pk=revalidation_id).version_id)
    with heartbeat(partial(say_revalidation_runs, revalidation_id=revalidation_id)):
        report = _report_on(version)
    record_revalidation(actor=actor, revalidation_id=revalidation_id, report=report)


def _report_on(version: Version) -> StoredReport:
    _remove_abandoned()
    with _scratch() as folder, _scratch() as other:
        fetch_version(version, folder)
        report = _check(version, folder)
        if report.verdict is Outcome.REJECT:
            evaluated = Evaluated(not_run("other checks refuse it"))
        else:
            evaluated = evaluate_version(version, folder, scratch=other)
    whole = replace(report, checks=(*report.checks, *evaluated.checks))
    return stored_report(whole, reference=evaluated.reference)


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=SCRATCH) as folder:
        yield Path(folder)


def _remove_abandoned() -> None:
    """A worker that was killed leaves its scratch folder behind; no run is older than its task's time limit."""
    oldest = time.time() - _ABANDONED_AFTER_S
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        if folder.is_dir() and not folder.is_symlink() and folder.stat().st_mtime < oldest:
            logger.warning("removing %s, which a killed validation left behind", folder)
            shutil.rmtree(folder, ignore_errors=True)


def stored_report(report: Report, *, reference: ProbeReference | None = None) -> StoredReport:
    """A report in the form that the registry keeps."""
    return StoredReport(
        verdict=report.verdict.value,
        policy_version=report.policy_version,
        summary=" ".join(report.reasons),
        document=report.to_json(),
        digest=report.digest,
        rank=_kept_rank(report.facts.rank),
        target_modules=report.facts.target_modules,
        reference=reference,
    )


def _kept_rank(rank: int | None) -> int | None:
    """A refused upload may claim any rank; one that no column holds is left to the report."""
    return rank if rank is not None and rank <= _MAX_KEPT_RANK else None


def _base_folder(revision: BaseModelRevision) -> Path | None:
    """Where this worker has the base, if it does: a copy of its embedding can then be told from a changed one."""
    try:
        return find_base(settings.BASE_MODEL_FOLDERS, name=revision.base_model.name, label=revision.label)
    except NotPossibleError:
        return None


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
        base_folder=_base_folder(revision),
        # A worker that runs versions has torch and perhaps a device; any other goes without both.
        device=None if settings.BASE_MODEL_FOLDERS is None else cuda_device(),
    )
