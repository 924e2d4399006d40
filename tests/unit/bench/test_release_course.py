"""What the bench of releases has in hand when it tells of a rollback."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bench.release import course
from bench.release.course import Releases, Stuck
from client.resources.releases import Release, ReleasedVersion, Rollback
from releases.services.departures import SETTLES_AFTER

STABLE, CANDIDATE = (ReleasedVersion(adapter="support-tone", version=name) for name in ("v1", "v2"))
ENDED = datetime(2026, 7, 4, 10, 5, tzinfo=UTC)
ROLLBACK = Rollback(alias="support", left=CANDIDATE, commit_ms=17.0)
RECORDED = replace(ROLLBACK, last_answer_ms=812.0, strays=1)
SETTLED = replace(ROLLBACK, last_answer_ms=1312.0, strays=2, settled_at="2026-07-04T10:20:01+00:00")


class Clock:
    """Passes while somebody sleeps."""

    def __init__(self) -> None:
        self.now = ENDED.timestamp()

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def seconds(self) -> float:
        return self.now - ENDED.timestamp()


class Person:
    """Reads of the release what the controller has found of its rollback by then; ``found`` by seconds after it."""

    def __init__(self, clock: Clock, found: dict[float, Rollback]) -> None:
        self._clock, self._found = clock, found
        self.releases = self

    def get(self, _alias: Any, number: int) -> Release:
        known = [rollback for since, rollback in self._found.items() if since <= self._clock.seconds]
        return Release(
            tenant="acme",
            alias="support",
            number=number,
            state="rolled_back" if known else "promoted",
            stable=STABLE,
            candidate=CANDIDATE,
            started_at="2026-07-04T10:00:00+00:00",
            ended_at=ENDED.isoformat(),
            rollbacks=tuple(known[-1:]),
        )

    def timeline(self, _alias: Any, _number: int) -> tuple[()]:
        return ()


class Stage:
    def __init__(self, person: Person) -> None:
        self._person = person

    def person(self, _name: str) -> Any:
        return self._person


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "time", made.time)
    monkeypatch.setattr(time, "sleep", made.sleep)
    return made


def releases(clock: Clock, found: dict[float, Rollback]) -> Releases:
    return Releases(Stage(Person(clock, found)))  # type: ignore[arg-type]


def test_records_of_a_rollback_get_the_time_to_arrive(clock: Clock) -> None:
    found = releases(clock, {0: ROLLBACK, 9: RECORDED}).course(1)
    assert (found.number, found.commit_ms, found.last_answer_ms, found.strays) == (1, 17.0, 812.0, 1)


def test_a_release_without_a_rollback_is_told_of_at_once(clock: Clock) -> None:
    assert releases(clock, {}).course(1).commit_ms is None
    assert clock.seconds == 0


def test_what_is_final_is_waited_for_until_the_controller_has_settled_it(clock: Clock) -> None:
    settled_by = (SETTLES_AFTER + timedelta(seconds=30)).total_seconds()
    found = releases(clock, {0: ROLLBACK, 9: RECORDED, settled_by: SETTLED}).settled(1)
    assert (found.last_answer_ms, found.strays) == (1312.0, 2)
    assert settled_by <= clock.seconds < course.SETTLED_S


def test_a_rollback_that_nobody_settles_is_said_to_be_stuck(clock: Clock) -> None:
    with pytest.raises(Stuck, match="release 1 isn't settled after 16 minutes"):
        releases(clock, {0: RECORDED}).settled(1)
