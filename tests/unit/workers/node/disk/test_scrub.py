from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.workers.node.kit import Release, Rig
from workers.node.agent import Agent
from workers.node.commands import parse_fetch, parse_warm
from workers.node.disk.scrub import PAUSE_S, Scrub
from workers.node.jobs.fetch import fetch
from workers.node.jobs.warm import warm
from workers.node.limits import Limits


def corrupt(agent: Agent, release: Release) -> Path:
    path = agent.cache.folder(release.name) / "adapter_model.safetensors"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")
    return path


def scrub(agent: Agent, pauses: list[float] | None = None) -> int:
    def wait(seconds: float) -> bool:
        (pauses if pauses is not None else []).append(seconds)
        return False

    return Scrub(agent, wait=wait).round()


def test_rounds_lie_as_far_apart_as_is_asked(rig: Rig) -> None:
    pauses: list[float] = []

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) > 1

    Scrub(rig.agent(), wait=wait, pause_s=7.0).run()
    assert pauses == [7.0, 7.0]


@pytest.fixture
def loaded(rig: Rig) -> tuple[Agent, Release]:
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm()))
    return agent, release


def test_sound_files_are_left_alone(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    assert scrub(agent) == 0
    assert release.name in rig.engine.roots
    assert rig.told(agent)[-1] == "loaded"


def test_a_loaded_version_with_a_corrupted_file_is_unloaded_told_and_loaded_anew(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    path = corrupt(agent, release)
    assert scrub(agent) == 1
    assert rig.engine.roots == {}
    assert rig.told(agent)[-1] == "failed"
    last = rig.web.outcomes[-1]
    assert (last["error_class"], last["generation"], "corrupted" in last["message"]) == ("transient", 1, True)
    outcome = warm(agent, parse_warm(release.warm(generation=2)))
    assert outcome is not None
    assert outcome.outcome == "loaded"
    assert path.read_bytes() == release.contents[path.name]
    assert scrub(agent) == 0
    assert release.name in rig.engine.roots


def test_files_of_a_corrupted_version_stay_while_the_engine_may_read_them(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    corrupt(agent, release)
    scrub(agent)
    assert agent.cache.names() == (release.name,)
    rig.clock.time += 1000
    scrub(agent)
    assert agent.cache.names() == ()
    assert agent.dropped.pending() == ()


def test_a_corrupted_version_that_nothing_reads_is_deleted_and_missed_by_web(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    fetch(agent, parse_fetch(release.fetch()))
    corrupt(agent, release)
    assert scrub(agent) == 1
    assert agent.cache.names() == ()


def test_a_version_in_work_or_an_engine_that_is_away_is_seen_to_in_the_next_round(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    corrupt(agent, release)
    rig.engine.away = True
    scrub(agent)
    assert release.name in rig.engine.roots
    rig.engine.away = False
    with agent.lanes.enter(release.name, generation=9, act="warm", outranks=True):
        scrub(agent)
    assert release.name in rig.engine.roots
    scrub(agent)
    assert rig.engine.roots == {}


def test_it_reads_no_faster_than_it_may(loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    agent.limits.now = Limits(scrub_bytes_per_s=100)
    pauses: list[float] = []
    scrub(agent, pauses)
    assert sum(pauses) == pytest.approx(sum(map(len, release.contents.values())) / 100)


def test_it_can_be_turned_off(loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    agent.limits.now = Limits(scrub_bytes_per_s=0)
    corrupt(agent, release)
    assert scrub(agent) == 0


def test_a_round_that_fails_does_not_end_the_next(
    loaded: tuple[Agent, Release], caplog: pytest.LogCaptureFixture
) -> None:
    agent, _ = loaded
    waits = iter([False, False, True])
    scrubber = Scrub(agent, wait=lambda _: next(waits))
    rounds: list[int] = []

    def broken() -> int:
        rounds.append(1)
        raise ZeroDivisionError

    scrubber.round = broken  # type: ignore[method-assign]
    scrubber.run()
    assert len(rounds) == 2
    assert "a scrub failed" in caplog.text


def test_what_uses_a_corrupted_file_goes_before_the_next_file_is_read(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    corrupt(agent, release)
    fetch(agent, parse_fetch(rig.release(version="v2", seed=2).fetch()))
    there: list[bool] = []
    drop = agent.cache.drop_if_corrupted

    def noting(sha256: str, *, after: Callable[[int], None] = lambda _: None) -> bool:
        there.append(release.name in rig.engine.roots)
        return drop(sha256, after=after)

    agent.cache.drop_if_corrupted = noting  # type: ignore[method-assign]
    weights = next(file.sha256 for file in release.files if file.path.endswith(".safetensors"))
    order = sorted(agent.cache.blobs())
    scrub(agent)
    assert there == [place <= order.index(weights) for place in range(len(order))]


def test_a_rate_that_is_almost_nothing_is_looked_at_again_soon(loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    agent.limits.now = Limits(scrub_bytes_per_s=5e-324)
    pauses: list[float] = []

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        if len(pauses) > 3:
            agent.limits.now = Limits(scrub_bytes_per_s=0)
        return False

    Scrub(agent, wait=wait).round()
    assert max(pauses) == PAUSE_S
