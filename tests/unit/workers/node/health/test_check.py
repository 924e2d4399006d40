"""The check that goes on: a lying /health, poison, and a version that doesn't answer as itself any more."""

from dataclasses import replace
from threading import Event

import pytest

from registry.reports import PROBE_TEXT, ProbeReference
from tests.unit.workers.node.kit import BASE, NAN, Release, Rig
from workers.node.agent import Agent
from workers.node.commands import parse_warm
from workers.node.engines.connection import EngineSlowError
from workers.node.engines.ports import Reading
from workers.node.errors import EngineError, EngineFailedError, EngineFullError, EngineRefusedError
from workers.node.health.check import FAILURES, SLOW_FAILURES, Health
from workers.node.heartbeat import Heartbeat
from workers.node.jobs.warm import warm

REFERENCE = ProbeReference(PROBE_TEXT, base=(-1.0, -2.0), adapter=(-1.5, -2.25))


@pytest.fixture
def loaded(rig: Rig) -> tuple[Agent, Release]:
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm(probe_reference=REFERENCE.to_json())))
    rig.engine.calls.clear()
    return agent, release


def break_generation(rig: Rig) -> None:
    """The engine answers nothing but its list of models and /health."""

    def broken(*, model: str, prompt: str) -> Reading:
        raise EngineRefusedError(f"HTTP 500 for {model}, {len(prompt)}")

    rig.engine.read_prompt = broken  # type: ignore[method-assign]


def test_an_idle_engine_is_read_with_its_base_and_a_version(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    Health(agent).check()
    assert rig.engine.calls == [("read", BASE), ("read", release.name)]


def test_while_requests_run_only_a_version_in_use_is_read(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    other = rig.release(version="v2", seed=2)
    warm(agent, parse_warm(other.warm()))
    rig.engine.calls.clear()
    rig.engine.busy = frozenset({other.name})
    health = Health(agent)
    health.check()
    health.check()
    assert rig.engine.calls == [("read", other.name), ("read", other.name)]
    assert release.name in rig.engine.roots


def test_the_versions_take_turns(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    other = rig.release(version="v2", seed=2)
    warm(agent, parse_warm(other.warm()))
    rig.engine.calls.clear()
    health = Health(agent)
    for _ in range(3):
        health.check()
    read = [name for _, name in rig.engine.calls if name != BASE]
    assert read == [release.name, other.name, release.name]


def test_nothing_is_read_while_a_load_has_the_engine(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    with agent.turn.take():
        Health(agent).check()
    assert rig.engine.calls == []


def test_a_lying_health_is_found_out_and_told(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    health, honest = Health(agent), rig.engine.read_prompt
    break_generation(rig)
    for _ in range(FAILURES):
        health.check()
    Heartbeat(agent).beat()
    assert rig.web.reports[-1]["engine_healthy"] is False
    rig.engine.read_prompt = honest  # type: ignore[method-assign]
    health.check()
    Heartbeat(agent).beat()
    assert rig.web.reports[-1]["engine_healthy"] is True


def test_one_lost_answer_is_no_lie(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    break_generation(rig)
    Health(agent).check()
    assert agent.watch.look().healthy


@pytest.mark.parametrize("which", ["base", "version"])
def test_numbers_that_are_none_mark_the_engine_as_poisoned(rig: Rig, loaded: tuple[Agent, Release], which: str) -> None:
    agent, release = loaded
    rig.engine.reads[BASE if which == "base" else release.name] = NAN
    Health(agent).check()
    Heartbeat(agent).beat()
    assert (rig.web.reports[-1]["poisoned"], rig.web.reports[-1]["engine_healthy"]) == (True, False)


def test_a_base_that_reads_otherwise_than_before_is_not_well(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    health = Health(agent)
    rig.engine.reads[BASE] = (-1.0, -3.0)
    for _ in range(FAILURES):
        health.check()
    assert not agent.watch.look().healthy


def test_a_version_that_does_not_answer_as_itself_any_more_is_unloaded_and_told(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    rig.engine.reads[release.name] = (-2.5, -2.25)
    Health(agent).check()
    assert rig.engine.roots == {}
    assert rig.told(agent)[-1] == "failed"
    last = rig.web.outcomes[-1]
    assert (last["error_class"], last["generation"], "other_answers" in last["message"]) == ("transient", 1, True)
    assert agent.taint.of("boot-1") is None


def test_it_knows_what_to_expect_also_after_a_restart_of_the_agent(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    _, release = loaded
    rig.engine.reads[release.name] = (-2.5, -2.25)
    Health(rig.agent()).check()
    assert rig.engine.roots == {}


def test_an_engine_that_is_away_is_left_to_the_heartbeat(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    rig.engine.away = True
    Health(agent).check()
    assert agent.watch.doubt_of("boot-1") == ""


def test_a_check_that_fails_does_not_end_the_next(
    loaded: tuple[Agent, Release], caplog: pytest.LogCaptureFixture
) -> None:
    health, stop, checks = Health(loaded[0]), Event(), list[int]()

    def broken() -> None:
        checks.append(1)
        if len(checks) == 2:
            stop.set()
        raise ZeroDivisionError

    health.check = broken  # type: ignore[method-assign]
    health.run(stop, interval_s=0)
    assert len(checks) == 2
    assert "a health check failed" in caplog.text


@pytest.mark.parametrize("error", [EngineFullError("out of memory"), EngineFailedError("einsum(): subscript b")])
def test_one_reading_that_the_engine_failed_at_does_not_take_a_version_out(
    rig: Rig, loaded: tuple[Agent, Release], error: EngineError
) -> None:
    agent, release = loaded
    health, honest = Health(agent), rig.engine.read_prompt
    rig.engine.busy = frozenset({release.name})

    def failing(*, model: str, prompt: str) -> Reading:
        raise type(error)(f"{error} at {model}, {len(prompt)}")

    for _ in range(FAILURES):
        rig.engine.read_prompt = failing  # type: ignore[method-assign]
        health.check()
        assert release.name in rig.engine.roots
        rig.engine.read_prompt = honest  # type: ignore[method-assign]
        health.check()
    rig.engine.read_prompt = failing  # type: ignore[method-assign]
    for _ in range(FAILURES):
        health.check()
    assert rig.engine.roots == {}


def test_an_engine_that_does_not_tell_what_is_in_use_may_be_slow_for_a_while(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, _ = loaded
    rig.engine.capabilities = replace(rig.engine.capabilities, reports_in_use=False)
    health = Health(agent)

    def slow(*, model: str, prompt: str) -> Reading:
        raise EngineSlowError(f"{model} has many other requests than {prompt}")

    rig.engine.read_prompt = slow  # type: ignore[method-assign]
    for _ in range(SLOW_FAILURES - 1):
        health.check()
    assert agent.watch.look().healthy
    health.check()
    assert not agent.watch.look().healthy
