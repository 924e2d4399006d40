from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest

from tests.unit.workers.node.kit import NAN, Release, Rig
from workers.node.agent import Agent
from workers.node.commands import parse_warm
from workers.node.errors import WebAwayError
from workers.node.heartbeat import Heartbeat
from workers.node.warm import warm

NOON = datetime(2026, 7, 4, 12, tzinfo=UTC)


@pytest.fixture
def loaded(rig: Rig) -> tuple[Agent, Release]:
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm()))
    return agent, release


def beat(agent: Agent) -> Heartbeat:
    heart = Heartbeat(agent, now=lambda: NOON)
    heart.beat()
    return heart


def test_a_beat_tells_the_engines_life_and_what_is_where(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    beat(agent)
    assert rig.web.reports == [
        {
            "boot_id": "boot-1",
            "engine_healthy": True,
            "loaded": [{"name": release.name, "root": str(agent.cache.folder(release.name))}],
            "on_disk": [release.name],
            "sent_at": "2026-07-04T12:00:00+00:00",
        }
    ]


def test_an_engine_that_is_away_is_told_with_its_last_life(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    heart = beat(agent)
    rig.engine.away = True
    heart.beat()
    last = rig.web.reports[-1]
    assert (last["boot_id"], last["engine_healthy"], last["loaded"]) == ("boot-1", False, [])


def test_a_poisoned_engine_is_not_well_whatever_it_says(rig: Rig) -> None:
    release, agent = rig.release(), rig.agent()
    rig.engine.reads[release.name] = NAN
    warm(agent, parse_warm(release.warm()))
    heart = beat(agent)
    assert rig.web.reports[-1]["engine_healthy"] is False
    rig.engine.restart("boot-2")
    heart.beat()
    assert rig.web.reports[-1]["engine_healthy"] is True


def test_names_that_web_does_not_know_are_unloaded_and_their_files_go_later(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    rig.engine.roots["by-hand"] = "/elsewhere"
    rig.web.unknown = [release.name, "by-hand", "never-reported"]
    heart = beat(agent)
    assert rig.engine.roots == {}
    assert ("unload", "never-reported") not in rig.engine.calls
    assert agent.cache.names() == (release.name,)
    rig.clock.time += 11
    heart.beat()
    assert agent.cache.names() == ()


def test_an_answer_that_is_older_than_a_command_is_not_obeyed(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    rig.web.unknown = [release.name]
    original = rig.web.report

    def late(body: Mapping[str, Any]) -> Mapping[str, Any]:
        warm(agent, parse_warm(release.warm(generation=2)))
        return original(body)

    rig.web.report = late  # type: ignore[method-assign]
    beat(agent)
    assert release.name in rig.engine.roots


def test_nothing_is_unloaded_while_a_command_works(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    rig.web.unknown = [release.name]
    with agent.busy:
        beat(agent)
    assert release.name in rig.engine.roots


def test_web_being_away_is_logged_once(
    rig: Rig, loaded: tuple[Agent, Release], caplog: pytest.LogCaptureFixture
) -> None:
    agent, _ = loaded
    caplog.set_level("INFO", "workers.node.heartbeat")
    rig.web.error = WebAwayError("web does not answer")
    heart = beat(agent)
    heart.beat()
    rig.web.error = None
    heart.beat()
    heart.beat()
    assert [record.getMessage() for record in caplog.records] == [
        "the engine answers",
        "web: web does not answer",
        "web answers",
    ]


def test_a_bug_in_one_beat_does_not_stop_the_pulse(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    agent, stop = rig.agent(), Event()
    beats: list[int] = []

    def broken(body: Mapping[str, Any]) -> Mapping[str, Any]:
        beats.append(1)
        if len(beats) == 2:
            stop.set()
            return {}
        raise ZeroDivisionError

    rig.web.report = broken  # type: ignore[method-assign]
    Heartbeat(agent).run(stop, interval_s=0)
    assert len(beats) == 2
    assert "a heartbeat failed" in caplog.text
