import pytest

from releases.models import Release
from releases.services import departures
from tests.factories.releases import run_release
from workers.jobs import releases
from workers.tasks.releases import steer_release, steer_releases

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Releases in the order in which they were looked at; each has three changes due."""
    found: list[object] = []

    def steer(*, release_id: object) -> bool:
        found.append(release_id)
        return found.count(release_id) <= 3

    monkeypatch.setattr(releases, "steer_release", steer)
    return found


def test_what_is_due_is_done_in_one_pass(looked_at: list[object]) -> None:
    first, second = run_release(), run_release()
    steer_releases()
    assert sorted(map(str, looked_at)) == sorted([str(first.pk)] * 4 + [str(second.pk)] * 4)


def test_a_release_that_never_rests_leaves_time_for_the_others(
    monkeypatch: pytest.MonkeyPatch, looked_at: list[object]
) -> None:
    def never_rests(*, release_id: object) -> bool:
        looked_at.append(release_id)
        return True

    monkeypatch.setattr(releases, "steer_release", never_rests)
    run_release()
    steer_releases()
    assert len(looked_at) == releases._CHANGES


def test_one_releases_trouble_stops_no_other(monkeypatch: pytest.MonkeyPatch, looked_at: list[object]) -> None:
    first, second = run_release(), run_release()

    def steer(*, release_id: object) -> bool:
        looked_at.append(release_id)
        raise RuntimeError

    monkeypatch.setattr(releases, "steer_release", steer)
    settled: list[int] = []
    monkeypatch.setattr(releases, "settle_departures", lambda: settled.append(1))
    steer_releases()
    assert set(looked_at) == {first.pk, second.pk}
    assert settled == [1]


def test_a_nudge_steers_the_one_release(looked_at: list[object]) -> None:
    release = run_release()
    run_release()
    steer_release(str(release.pk))
    assert set(looked_at) == {release.pk}


def test_a_pass_over_nothing_is_quiet() -> None:
    steer_releases()
    assert not Release.objects.exists()
    assert departures.settle_departures() == 0
