"""What becomes of releases: made, approved by somebody else, started, and watched to their end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from bench.release.plan import TEMPLATE
from bench.release.stage import ALIAS_REF, version_ref

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.release.stage import Stage
    from client.resources.releases import Release, ReleaseStep, Rollback

LONGEST_S = 420.0
# By then gateways have recorded what they answered last, and the controller has looked.
RECORDED_S = 15.0
# The controller takes a rollback's times for final a quarter of an hour after it; a minute for its sweep.
SETTLED_S = 16 * 60.0
_LOOK_S = 0.2
_LOOK_IF_SETTLED_S = 5.0


class Stuck(Exception):
    """A release did not come to where it should; the message says where it is, and what it waits for."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One step of a release: its name, how often it was begun, and its UNIX times."""

    name: str
    state: str
    attempt: int
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def __str__(self) -> str:
        return f"{self.name} {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class Course:
    """A release that is over; UNIX times.

    `ended` is when the change stood by which it was over. `commit_ms`, `last_answer_ms` and `strays` are what
    Lorekeeper has recorded of its rollback: from the request to the change, to the last answer by the candidate, and
    how many requests began later and were answered by it. The last two are what is on record `RECORDED_S` later;
    `Releases.settled` has what is final.
    """

    number: int
    state: str
    sentence: str
    began: float
    ended: float
    stretches: tuple[Stretch, ...]
    commit_ms: float | None = None
    last_answer_ms: float | None = None
    strays: int = 0


class Releases:
    """The owner's release manager and reviewer at work."""

    def __init__(self, stage: Stage) -> None:
        """Connect them."""
        self._rui, self._ben = stage.person("rui"), stage.person("ben")

    def close(self) -> None:
        """Close their connections."""
        self._rui.close()
        self._ben.close()

    def write_template(self, text: str) -> None:
        """Write the template that releases are made by."""
        self._rui.release_templates.write(ALIAS_REF.tenant, TEMPLATE, text)

    def begin(self, candidate: str, *, plan_text: str | None = None) -> int:
        """Make a release of the alias by the template or by a plan, have it approved and start it; its number."""
        template = TEMPLATE if plan_text is None else None
        made = self._rui.releases.make(ALIAS_REF, version_ref(candidate), template=template, plan_text=plan_text)
        self._ben.releases.approve(ALIAS_REF, made.number, digest=made.digest)
        self._rui.releases.start(ALIAS_REF, made.number)
        return made.number

    def watch(self, number: int, until: Callable[[Release], bool], *, seconds: float = LONGEST_S) -> None:
        """Look until the release is as it should be.

        Raises:
            Stuck: it paused, ended otherwise, or took too long; it is aborted then, so that another can begin.

        """
        deadline = time.monotonic() + seconds
        while not until(release := self._rui.releases.get(ALIAS_REF, number)):
            if release.is_over or release.state == "paused" or time.monotonic() > deadline:
                if not release.is_over:
                    self._rui.releases.abort(ALIAS_REF, number, reason="it is stuck")
                raise Stuck(f"release {number} is {release.state} in step {release.step}: {release.sentence}")
            time.sleep(_LOOK_S)

    def running(self, number: int) -> str:
        """The name of the step that runs now."""
        steps = self._rui.releases.timeline(ALIAS_REF, number)
        return next((_name(step) for step in steps if step.state == "running"), "")

    def roll_back(self, number: int) -> None:
        """The button."""
        self._rui.releases.rollback(ALIAS_REF, number, reason="somebody saw something")

    def course(self, number: int) -> Course:
        """What became of a release that is over; records of a rollback get the time to arrive."""
        release = self._rui.releases.get(ALIAS_REF, number)
        if release.rollbacks:
            time.sleep(RECORDED_S)
            release = self._rui.releases.get(ALIAS_REF, number)
        steps = self._rui.releases.timeline(ALIAS_REF, number)
        rollback = release.rollbacks[0] if release.rollbacks else None
        return Course(
            number=number,
            state=release.state,
            sentence=release.sentence,
            began=moment(release.started_at),
            ended=moment(release.ended_at),
            stretches=tuple(_stretch(step) for step in steps if step.started_at),
            commit_ms=None if rollback is None else rollback.commit_ms,
            last_answer_ms=None if rollback is None else rollback.last_answer_ms,
            strays=0 if rollback is None else rollback.strays,
        )

    def settled(self, number: int) -> Rollback:
        """How long the rollback of a release took, once that is final.

        Raises:
            Stuck: it isn't, though the controller should have settled it by now.

        """
        while True:
            release = self._rui.releases.get(ALIAS_REF, number)
            rollback = release.rollbacks[0]
            if rollback.settled_at:
                return rollback
            if time.time() > moment(release.ended_at) + SETTLED_S:
                raise Stuck(f"the rollback of release {number} isn't settled after {SETTLED_S / 60:.0f} minutes")
            time.sleep(_LOOK_IF_SETTLED_S)


def _stretch(step: ReleaseStep) -> Stretch:
    began = moment(step.started_at)
    ended = moment(step.ended_at) if step.ended_at else began
    return Stretch(_name(step), step.state, step.attempt, began, ended)


def _name(step: ReleaseStep) -> str:
    if step.kind != "canary":
        return step.kind
    percent = float(str(step.spec["percent"]))
    return f"canary {percent:g} %" if percent else "canary by tenant"


def moment(text: str | None) -> float:
    """The UNIX time of what the API says; 0 where it says nothing."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0
