"""One version run on its base: its effect, its examples, and the reference that nodes probe against."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.conf import settings

from registry.base_models.description import BaseDescription
from registry.evaluation import EvaluationBrief
from registry.models import Version
from registry.reports import ProbeReference
from registry.selectors import brief_evaluation, get_version_by_id
from registry.services.validation import begin_evaluation, end_evaluation
from workers.evaluation.bases import find_base
from workers.evaluation.errors import NotPossibleError
from workers.evaluation.evaluate import Budget, Evaluation, evaluate
from workers.evaluation.findings import findings, not_run
from workers.evaluation.ports import Voice
from workers.jobs.fetching import fetch_version
from workers.validation import Check

if TYPE_CHECKING:
    from workers.evaluation.model import Shelf

logger = logging.getLogger(__name__)
MAX_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What running the model adds to a report; the reference is None when it was not run, or gave no numbers."""

    checks: Sequence[Check]
    reference: ProbeReference | None = None


def evaluate_version(version: Version, folder: Path, *, scratch: Path) -> Evaluated:
    """Run a version that all other checks let through.

    Args:
        version: which.
        folder: its files.
        scratch: an empty folder for the version it is compared with.

    """
    brief = brief_evaluation(version=version)
    # Before it begins: a store that is away is no failure of the model.
    folders = {Voice.CANDIDATE: folder, **_current(version, brief, scratch)}
    try:
        _begin(version)
        evaluation = _run_beside(version, folders, brief)
    except NotPossibleError as error:
        logger.warning("%s was not evaluated: %s", version, error)
        found = Evaluated(not_run(str(error)))
    else:
        reference = evaluation.reference if evaluation.is_finite else None
        found = Evaluated(findings(evaluation, brief), reference)
    end_evaluation(version_id=version.pk)
    return found


def _begin(version: Version) -> None:
    if begin_evaluation(version_id=version.pk) > MAX_ATTEMPTS:
        raise NotPossibleError(f"running it has failed {MAX_ATTEMPTS} times; the workers' logs say how")


def _run_beside(version: Version, folders: dict[Voice, Path], brief: EvaluationBrief) -> Evaluation:
    """Beside what is served now, or else alone: that one may be too large, or older than the rules it would fail."""
    try:
        return _run(version, folders, brief)
    except NotPossibleError as error:
        if Voice.CURRENT not in folders:
            raise
        logger.warning("%s is run alone: %s", version, error)
        return _run(version, {Voice.CANDIDATE: folders[Voice.CANDIDATE]}, brief)


def _run(version: Version, folders: dict[Voice, Path], brief: EvaluationBrief) -> Evaluation:
    revision = version.base_revision
    base = find_base(settings.BASE_MODEL_FOLDERS, name=revision.base_model.name, label=revision.label)
    shelf = _shelf()
    try:
        loaded = shelf.take(base, BaseDescription.from_json(revision.description))
        with shelf.voices_on(loaded, folders) as model:
            return evaluate(model, brief.examples, Budget(settings.EVALUATION_S))
    except BaseException:
        shelf.clear()
        raise


@cache
def _shelf() -> "Shelf":
    """One per process: a base that is loaded serves the next version too."""
    try:
        # Torch takes seconds to import and hundreds of megabytes: only a worker that evaluates has it.
        from workers.evaluation.model import Shelf  # noqa: PLC0415
    except ImportError as error:
        raise NotPossibleError(f"this worker lacks {error.name}: install lorekeeper[worker]") from error
    return Shelf(memory_bytes=settings.EVALUATION_MEMORY_BYTES)


def _current(version: Version, brief: EvaluationBrief, scratch: Path) -> dict[Voice, Path]:
    """The version that is served now, if it can be compared: on the same base, its bytes still there."""
    if brief.current_version_id is None or not brief.examples:
        return {}
    current = get_version_by_id(version_id=brief.current_version_id)
    try:
        if current.base_revision_id == version.base_revision_id and fetch_version(current, scratch):
            return {Voice.CURRENT: scratch}
    except OSError:
        # The disk has room for one, but not for two.
        logger.exception("%s can't be fetched", current)
    logger.info("%s can't be compared with %s, which is served now", version, current)
    return {}
