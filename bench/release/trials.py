"""The releases of a run: a sound candidate that is to be promoted, and candidates that do harm."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.release.figures import Calm, Harm, calm_of, harm_of, harmed_by
from bench.release.stage import version_ref

if TYPE_CHECKING:
    from bench.release.course import Course
    from bench.release.relay import Fault
    from bench.release.world import World

_AFTER_S = 2.0


@dataclass(frozen=True, slots=True)
class Case:
    """A candidate, and the fault that it has from the step of that name on."""

    version: str
    fault: Fault
    step: str

    def __str__(self) -> str:
        return f"{self.fault} from {self.step} on"


class Trials:
    """Releases one after the other while applications ask."""

    def __init__(self, world: World) -> None:
        self._world = world

    def promote(self, version: str) -> tuple[Course, Calm]:
        """Release a sound candidate."""
        number = self._world.releases.begin(version)
        self._world.releases.watch(number, lambda release: release.is_over)
        course = self._course(number)
        calm = calm_of(
            self._world.applications.answers,
            began=course.began,
            ended=course.ended + _AFTER_S,
            candidate=version,
            is_good=self._world.applications.is_good,
        )
        return course, calm

    def suffer(self, case: Case, *, plan_text: str | None = None) -> tuple[Course, Harm]:
        """Release a candidate, let its fault begin with the step, and wait for what becomes of it."""
        with self._world.stage.person("rui") as rui:
            engine_name = str(rui.versions.get(version_ref(case.version)).engine_name)
        number = self._world.releases.begin(case.version, plan_text=plan_text)
        self._world.releases.watch(number, lambda _release: self._world.releases.running(number) == case.step)
        onset = time.time()
        self._world.relay.afflict(engine_name, case.fault)
        try:
            self._world.releases.watch(number, lambda release: release.is_over)
            course = self._course(number)
        finally:
            self._world.relay.afflict(engine_name, None)
        harm = harm_of(
            self._world.applications.answers,
            onset=onset,
            ended=course.ended,
            candidate=case.version,
            is_harmed=harmed_by(case.fault, slow_s=self._world.plan.slow_s, is_good=self._world.applications.is_good),
        )
        return course, harm

    def _course(self, number: int) -> Course:
        """What became of it, once all that began by then has been answered."""
        time.sleep(_AFTER_S)
        return self._world.releases.course(number)
