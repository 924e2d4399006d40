"""The offline evaluation of a release's candidate beside its stable version; the port of releases."""

from datetime import datetime
from typing import Final
from uuid import UUID

from registry.actors import Actor
from registry.errors import WrongState
from registry.evaluation import Gates, examples_digest
from registry.models import Revalidation, ValidationReport, Version
from registry.selectors import brief_evaluation, get_version_by_id
from registry.services.validation import request_revalidation
from releases.ports import Evaluation, Figures
from workers.evaluation.comparison import broken_gates, figures_in, told, why_without
from workers.evaluation.metrics import Metrics

_REASON: Final = "a release compares it"


def compare_evaluations(*, actor: Actor, candidate_id: UUID, stable_id: UUID, since: datetime) -> Evaluation:
    """Hold the tenant's gates of today against both versions' figures on the evaluation set of today.

    A version without figures on it is evaluated again, once since ``since``.
    """
    candidate, stable = get_version_by_id(version_id=candidate_id), get_version_by_id(version_id=stable_id)
    brief = brief_evaluation(version=candidate)
    if not brief.examples:
        return Evaluation(Figures.NONE, "There is no evaluation set for the candidate: nothing is compared.")
    digest = examples_digest(brief.examples)
    found = {version.pk: _figures(version, digest) for version in (candidate, stable)}
    missing = [version for version in (candidate, stable) if found[version.pk] is None]
    awaited = [str(version) for version in missing if _is_awaited(actor, version, since)]
    if awaited:
        return Evaluation(Figures.AWAITED, f"It waits for the evaluation of {' and '.join(awaited)}.")
    figures = found[candidate.pk]
    if figures is None:
        return Evaluation(Figures.NONE, f"{candidate} could not be evaluated: {_why_without(candidate)}.")
    return _held(brief.gates, figures, found[stable.pk])


def _figures(version: Version, digest: str) -> Metrics | None:
    """The newest ones on the examples with that digest."""
    reports = ValidationReport.objects.filter(version=version).values_list("report", flat=True)
    return next(filter(None, (figures_in(report, set_digest=digest) for report in reports.iterator())), None)


def _why_without(version: Version) -> str:
    report = ValidationReport.objects.filter(version=version).values_list("report", flat=True).first()
    return "it was never validated" if report is None else why_without(report)


def _is_awaited(actor: Actor, version: Version, since: datetime) -> bool:
    """Whether figures may still come: they are asked for unless they were since, in vain."""
    asked = Revalidation.objects.filter(version=version)
    if asked.filter(finished_at__isnull=True).exists():
        return True
    if asked.filter(requested_at__gte=since).exists():
        return False
    try:
        request_revalidation(actor=actor, version=version, reason=_REASON)
    except WrongState:
        return False
    return True


def _held(gates: Gates, candidate: Metrics, stable: Metrics | None) -> Evaluation:
    broken = broken_gates(gates, candidate, stable)
    figures = told(candidate, stable)
    if not broken:
        return Evaluation(Figures.KEPT, f"Every gate is kept {figures}.")
    names = ", ".join(f"{each.gate} {each.bound:g}" for each in broken)
    if gates.enforcement == "warn":
        return Evaluation(Figures.KEPT, f"Not kept, though the tenant only warns of it: {names} {figures}.")
    return Evaluation(Figures.BROKEN, f"Not kept: {names} {figures}.")
