from dataclasses import replace

import pytest

from bench.cache.__main__ import conclude
from bench.cache.arms import Outcome
from bench.cache.figures import Figures
from bench.cache.identity import Voices

BY_HAND = Figures(
    requests=100,
    answered=100,
    misses=40,
    median_ms=50.0,
    p95_ms=900.0,
    p99_ms=990.0,
    loaded_bytes=1000,
    loads=40,
    downloaded_bytes=1000,
    wrong=0,
    misrouted=0,
    reasons={},
    crashed=False,
)
OURS = replace(BY_HAND, misses=20, p95_ms=450.0, loaded_bytes=500, downloaded_bytes=900)


def outcome(figures: Figures) -> Outcome:
    return Outcome(figures, Voices({}), faults=figures.faults())


def test_an_arm_that_is_better_in_all_is_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert conclude(outcome(BY_HAND), outcome(OURS), 60.0) == 0
    assert "bench-cache: ok" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("by_hand", "fault"),
    [
        (replace(BY_HAND, crashed=True), "by hand: the engine ended"),
        (replace(BY_HAND, answered=97), "by hand: 3 requests were not answered"),
        (replace(BY_HAND, wrong=1), "by hand: 1 answers were wrong"),
        (replace(BY_HAND, answered=0, misses=0, loaded_bytes=0, downloaded_bytes=0, crashed=True), "the engine ended"),
    ],
)
def test_being_better_than_an_arm_that_failed_is_worth_nothing(
    by_hand: Figures, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conclude(outcome(by_hand), outcome(OURS), 60.0) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert "bench-cache: short" in last
    assert fault in last
