"""Verdicts on steps of releases, as a controller keeps them."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from releases.judge.facts import Marks, Side, Sketch, Slice, Window
from releases.judge.judge import judge
from releases.models import Release
from releases.plan.document import PlanDocument
from releases.plan.judging import judge_settings
from releases.plan.steps import CanaryStep
from releases.services.releases.steps import present_step
from releases.steering.course import course_of
from releases.steering.records import record_of
from releases.transitions import note_look

SLICE_S = 20.0


def window_of(*, slices: int = 12, failed: int = 0, slower_ms: float = 0.0) -> Window:
    """As many slices in which both sides were asked equally; the canary failed so often and was so much slower."""

    def side(errors: int, ms: float) -> Side:
        times = Sketch.of([ms] * 40)
        return Side(requests=40, errors=errors, ttft=times, total=times, cost=times, quality=Marks(10, 9.0))

    parts = (
        Slice(index=number, canary=side(failed, 100 + slower_ms), stable=side(0, 100), agreement=Marks(8, 7.5))
        for number in range(slices)
    )
    return Window(slices=tuple(parts))


def note_verdict(release: Release, *, window: Window | None = None, sentence: str = "") -> Release:
    """The release with a verdict on its present step."""
    window = window_of() if window is None else window
    step, now = present_step(release), timezone.now()
    verdict = judge(window, judge_settings(PlanDocument(), CanaryStep(percent=10.0)))
    course = course_of(window, since=now - timedelta(minutes=5), slice_s=SLICE_S)
    facts: dict[str, Any] = {"verdict": record_of(verdict, window), "course": course}
    note_look(release, step, sentence=sentence or verdict.sentence, looked_at=now, **facts)
    return release
