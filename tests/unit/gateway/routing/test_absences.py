from dataclasses import replace

from gateway.routing.absences import Absences
from gateway.routing.snapshot import Residency
from tests.unit.gateway.worlds import V1, V2

HERE = Residency(node="n1", version_id=V1, engine_name="lk-a", observed="loaded", generation=1)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_marked_residency_is_covered_for_its_time() -> None:
    clock = Clock()
    absences = Absences(lasts_s=2.0, clock=clock)
    absences.mark(HERE)
    clock.now += 1.9
    assert absences.covers(HERE)
    clock.now += 0.2
    assert not absences.covers(HERE)


def test_a_residency_that_changed_since_is_not_covered() -> None:
    absences = Absences(clock=Clock())
    absences.mark(HERE)
    assert not absences.covers(replace(HERE, generation=2))
    assert not absences.covers(replace(HERE, observed="loading"))


def test_other_nodes_and_versions_are_not_covered() -> None:
    absences = Absences(clock=Clock())
    absences.mark(HERE)
    assert not absences.covers(replace(HERE, node="n2"))
    assert not absences.covers(replace(HERE, version_id=V2))


def test_old_marks_are_swept_away() -> None:
    clock = Clock()
    absences = Absences(lasts_s=1.0, clock=clock)
    for number in range(1002):
        absences.mark(replace(HERE, node=f"n{number}"))
    clock.now += 2
    absences.mark(HERE)
    assert len(absences._marked) == 1
