from datetime import UTC, datetime, timedelta

from releases.judge.facts import Marks, Side, Sketch, Slice, Window
from releases.steering.course import MOST_POINTS, course_of

SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def part(index: int, *, ms: float = 100.0, errors: int = 0) -> Slice:
    side = Side(requests=10, errors=errors, ttft=Sketch.of([ms] * 10), total=Sketch.of([ms] * 10))
    return Slice(index=index, canary=side, stable=Side(requests=20), agreement=Marks(4, 3.0))


def test_without_slices_there_is_no_course() -> None:
    assert course_of(Window(), since=SINCE, slice_s=20) == []


def test_a_point_tells_both_sides_of_its_time() -> None:
    (point,) = course_of(Window(slices=(part(0, errors=1),)), since=SINCE, slice_s=20)
    assert point["at"] == SINCE.isoformat()
    assert point["requests"] == [10, 20]
    assert point["errors"] == [10.0, 0.0]
    assert point["agreement"] == 75.0


def test_a_quantile_is_at_most_a_class_off() -> None:
    (point,) = course_of(Window(slices=(part(0, ms=250.0),)), since=SINCE, slice_s=20)
    canary, stable = point["total"]
    assert abs(canary - 250.0) / 250.0 < 0.045
    assert stable is None


def test_a_time_without_requests_is_left_out_and_keeps_its_place() -> None:
    first, second = course_of(Window(slices=(part(0), part(3))), since=SINCE, slice_s=20)
    assert datetime.fromisoformat(second["at"]) - datetime.fromisoformat(first["at"]) == timedelta(seconds=60)


def test_a_long_step_has_no_more_points_than_can_be_drawn() -> None:
    points = course_of(Window(slices=tuple(part(index) for index in range(1000))), since=SINCE, slice_s=20)
    assert len(points) == MOST_POINTS
    assert sum(point["requests"][0] for point in points) == 10_000
