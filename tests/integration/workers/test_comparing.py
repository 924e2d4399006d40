"""The offline evaluation of a candidate beside its stable version, out of validation reports as workers write them."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from registry.evaluation import Example, examples_digest, examples_json
from registry.models import EvaluationGates, EvaluationSet, Revalidation, ValidationReport, Version
from releases.ports import Evaluation, Figures
from tests.factories.registry import digest_for, make_actor, make_version
from workers.evaluation.metrics import Metrics
from workers.jobs.comparing import compare_evaluations

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
EXAMPLES = (Example("How are you?", reference="Fine."),)


@pytest.fixture
def stable() -> Version:
    return make_version()


@pytest.fixture
def candidate(stable: Version) -> Version:
    return make_version(adapter=stable.adapter)


@pytest.fixture
def since() -> datetime:
    return timezone.now() - timedelta(seconds=1)


@pytest.fixture
def compare(stable: Version, candidate: Version, since: datetime) -> Any:
    def asked(*, since: datetime = since) -> Evaluation:
        return compare_evaluations(actor=make_actor(), candidate_id=candidate.pk, stable_id=stable.pk, since=since)

    return asked


@pytest.fixture
def evaluation_set(stable: Version) -> EvaluationSet:
    tenant = stable.adapter.tenant
    return EvaluationSet.objects.create(
        tenant=tenant,
        name="smoke",
        examples=examples_json(EXAMPLES),
        digest=examples_digest(EXAMPLES),
        changed_at=timezone.now(),
    )


def gate(version: Version, **gates: Any) -> None:
    EvaluationGates.objects.create(tenant=version.adapter.tenant, gates=gates, changed_at=timezone.now())


def report(
    version: Version, *, perplexity: float | None, message: str = "the base was not run", part: str = ""
) -> ValidationReport:
    """A report with figures, or without any; `part` says why they are on a part of the set alone."""
    check: dict[str, Any] = {"name": "evaluation", "verdict": "warn", "code": "not_checked", "message": message}
    check["evidence"] = {}
    told = {"max_perplexity": "a gate is not kept", "incomplete": part} if part else {}
    before = [{**check, "code": code, "message": words} for code, words in told.items()]
    if perplexity is not None:
        figures = Metrics(1, 1, perplexity, None, 0.5, None, 0.1)
        check["evidence"] = {"set_digest": examples_digest(EXAMPLES), "metrics": {"candidate": asdict(figures)}}
    text = f"{version} {perplexity} {timezone.now()}"
    checks = [*before, check]
    return ValidationReport.objects.create(
        version=version, verdict="accept", policy_version="3", report={"checks": checks}, digest=digest_for(text)
    )


def finish(version: Version, made: ValidationReport) -> None:
    Revalidation.objects.filter(version=version).update(finished_at=timezone.now(), report=made)


def test_without_an_evaluation_set_there_is_nothing_to_compare(compare: Any) -> None:
    found = compare()
    assert found.figures is Figures.NONE
    assert "no evaluation set" in found.sentence
    assert not Revalidation.objects.exists()


@pytest.mark.usefixtures("evaluation_set")
class TestWithSet:
    def test_figures_of_both_are_held_against_each_other(self, compare: Any, stable: Any, candidate: Any) -> None:
        report(stable, perplexity=4.0)
        report(candidate, perplexity=4.1)
        gate(stable, max_perplexity_increase=0.1)
        found = compare()
        assert found.figures is Figures.KEPT
        assert "perplexity 4.1 (stable 4)" in found.sentence

    def test_a_gate_that_is_broken_is_named(self, compare: Any, stable: Any, candidate: Any) -> None:
        report(stable, perplexity=4.0)
        report(candidate, perplexity=5.0)
        gate(stable, max_perplexity_increase=0.1)
        found = compare()
        assert found.figures is Figures.BROKEN
        assert "max_perplexity_increase 0.1" in found.sentence

    def test_a_tenant_that_only_warns_lets_it_pass(self, compare: Any, stable: Any, candidate: Any) -> None:
        report(stable, perplexity=4.0)
        report(candidate, perplexity=5.0)
        gate(stable, max_perplexity_increase=0.1, enforcement="warn")
        found = compare()
        assert found.figures is Figures.KEPT
        assert "only warns" in found.sentence

    def test_the_newest_figures_count(self, compare: Any, stable: Any, candidate: Any) -> None:
        report(stable, perplexity=4.0)
        report(candidate, perplexity=9.0)
        report(candidate, perplexity=4.0)
        gate(stable, max_perplexity_increase=0.1)
        assert compare().figures is Figures.KEPT

    def test_missing_figures_are_asked_for_once(self, compare: Any, stable: Any, candidate: Any) -> None:
        report(stable, perplexity=4.0)
        for _look in range(2):
            found = compare()
            assert found.figures is Figures.AWAITED
            assert str(candidate) in found.sentence
        assert Revalidation.objects.get().version == candidate
        finish(candidate, report(candidate, perplexity=4.0))
        assert compare().figures is Figures.KEPT
        assert Revalidation.objects.count() == 1

    def test_figures_on_another_set_are_none(self, compare: Any, stable: Any, candidate: Any) -> None:
        report(stable, perplexity=4.0)
        report(candidate, perplexity=4.0)
        other = (Example("What now?"),)
        EvaluationSet.objects.update(examples=examples_json(other), digest=examples_digest(other))
        assert compare().figures is Figures.AWAITED
        assert Revalidation.objects.count() == 2

    def test_a_candidate_that_cannot_be_evaluated_has_no_figures(
        self, compare: Any, stable: Any, candidate: Any
    ) -> None:
        report(stable, perplexity=4.0)
        compare()
        finish(candidate, report(candidate, perplexity=None, message="this worker lacks torch"))
        found = compare()
        assert found.figures is Figures.NONE
        assert "this worker lacks torch" in found.sentence

    def test_figures_on_a_part_of_the_set_are_none(self, compare: Any, stable: Any, candidate: Any) -> None:
        report(stable, perplexity=4.0)
        made = report(candidate, perplexity=3.0, part="only 1 of 2 examples were evaluated")
        assert compare().figures is Figures.AWAITED
        finish(candidate, made)
        found = compare()
        assert found.figures is Figures.NONE
        assert "only 1 of 2 examples were evaluated" in found.sentence

    def test_a_new_attempt_asks_again(self, compare: Any, stable: Any, candidate: Any) -> None:
        report(stable, perplexity=4.0)
        compare()
        finish(candidate, report(candidate, perplexity=None))
        assert compare(since=timezone.now()).figures is Figures.AWAITED
        assert Revalidation.objects.count() == 2

    def test_gates_that_compare_are_not_kept_without_the_stable_versions_figures(
        self, compare: Any, stable: Any, candidate: Any
    ) -> None:
        report(candidate, perplexity=4.0)
        gate(stable, max_perplexity_increase=0.1)
        compare()
        finish(stable, report(stable, perplexity=None))
        assert compare().figures is Figures.BROKEN
