from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any
from unittest.mock import ANY, Mock

import pytest

from tests.unit.workers.node.kit import NAN, Release, Rig
from workers.node.agent import Agent
from workers.node.commands import parse_evict, parse_fetch, parse_warm
from workers.node.disk.marks import Drop
from workers.node.errors import EngineAwayError, WebAwayError
from workers.node.heartbeat import Heartbeat
from workers.node.jobs.evict import evict
from workers.node.jobs.fetch import fetch
from workers.node.jobs.warm import warm

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
            "tainted": False,
            "poisoned": False,
            "restartable": True,
            "mismatched": [],
            "tiers": None,
            "disk": {"used_bytes": agent.cache.used_bytes(), "free_bytes": ANY},
            "dropped": [],
            "unchanged": False,
            "loaded": [{"name": release.name, "root": str(agent.cache.folder(release.name))}],
            "on_disk": [release.name],
            "sent_at": "2026-07-04T12:00:00+00:00",
        }
    ]


def test_a_clock_that_is_put_back_makes_no_report_look_older_than_the_one_before(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([NOON, NOON - timedelta(seconds=30), NOON - timedelta(seconds=25)])
    monkeypatch.setattr("workers.node.heartbeat.datetime", Mock(now=lambda _zone: next(times)))
    heart = Heartbeat(rig.agent())
    heart.beat()
    heart.beat()
    first, second = (report["sent_at"] for report in rig.web.reports)
    assert first < second


def test_a_load_that_failed_in_the_engine_is_told_with_every_beat_of_that_life(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    """Its outcome may reach web before the first report of that life, and say nothing to it then."""
    agent, _ = loaded
    agent.taint.mark(boot_id="boot-1", reason="a size is wrong", poisoned=False)
    beat(agent)
    rig.engine.restart("boot-2")
    beat(agent)
    assert [report["tainted"] for report in rig.web.reports] == [True, False]


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


def test_names_that_web_does_not_know_are_unloaded_and_their_files_stay(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    rig.engine.roots["by-hand"] = "/elsewhere"
    rig.web.unknown = [release.name, "by-hand", "never-reported"]
    heart = beat(agent)
    assert rig.engine.roots == {}
    assert ("unload", "never-reported") not in rig.engine.calls
    rig.clock.time += 11
    heart.beat()
    assert agent.cache.names() == (release.name,)


def test_a_name_that_was_evicted_and_is_loaded_by_hand_is_unloaded_and_its_files_go(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    evict(agent, parse_evict(release.evict()))
    rig.engine.roots[release.name] = str(agent.cache.folder(release.name))
    rig.web.unknown = [release.name]
    heart = beat(agent)
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
    with agent.lanes.enter(release.name, generation=9, act="evict", outranks=True):
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


def test_what_web_has_accepted_is_left_out_of_the_next_report(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    heart = beat(agent)
    heart.beat()
    assert rig.web.reports[-1]["unchanged"] is True
    assert rig.web.reports[-1].keys().isdisjoint({"loaded", "on_disk"})
    fetch(agent, parse_fetch(rig.release(version="v2", seed=2).fetch()))
    heart.beat()
    assert rig.web.reports[-1]["unchanged"] is False
    assert release.name in rig.web.reports[-1]["on_disk"]


def test_a_report_that_was_not_accepted_is_sent_whole_again(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    heart = beat(agent)
    rig.web.error = WebAwayError("down")
    heart.beat()
    rig.web.error = None
    heart.beat()
    assert rig.web.reports[-1]["unchanged"] is False


def test_web_can_ask_for_the_whole(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    heart = beat(agent)
    rig.web.answer = {"resend": True}
    heart.beat()
    heart.beat()
    assert rig.web.reports[-1]["unchanged"] is False


def test_a_name_from_another_path_is_told_and_unloaded_at_once(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    rig.engine.roots[release.name] = "/elsewhere"
    beat(agent)
    assert rig.web.reports[-1]["mismatched"] == [release.name]
    assert rig.engine.roots == {}
    assert agent.cache.names() == (release.name,)


def test_drops_are_told_until_web_has_accepted_them(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    agent.dropped.add(Drop("lk-gone", "ttl"))
    rig.web.error = WebAwayError("down")
    heart = beat(agent)
    rig.web.error = None
    heart.beat()
    heart.beat()
    assert [report["dropped"] for report in rig.web.reports] == [[{"name": "lk-gone", "reason": "ttl"}], []]


def test_limits_are_heeded_and_senseless_ones_named_once(
    rig: Rig, loaded: tuple[Agent, Release], caplog: pytest.LogCaptureFixture
) -> None:
    agent, _ = loaded
    rig.web.answer = {"limits": {"disk_ttl_s": 60}}
    heart = beat(agent)
    assert agent.limits.now.disk_ttl_s == 60
    rig.web.answer = {"limits": {"disk_ttl_s": "long"}}
    heart.beat()
    heart.beat()
    assert caplog.text.count("disk_ttl_s must be a number") == 1
    assert agent.limits.now.disk_ttl_s == 60


def test_marks_are_kept_with_each_beat(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    evict(agent, parse_evict(release.evict(to="disk")))
    rig.web.answer = {"limits": {"disk_ttl_s": 60}}
    heart = beat(agent)
    rig.clock.time += 61
    heart.beat()
    assert agent.cache.names() == ()


def test_web_can_have_the_engine_restarted(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    rig.web.answer = {"recycle": "boot-1"}
    heart = beat(agent)
    heart.beat()
    agent.recycler.join(5)
    assert rig.restarter.calls == 1
    release = rig.release(version="v2", seed=2)
    outcome = warm(agent, parse_warm(release.warm()))
    assert outcome is not None
    assert (outcome.error_class, "being restarted" in outcome.message) == ("transient", True)
    rig.engine.restart("boot-2")
    heart.beat()
    assert rig.restarter.calls == 1


def test_tiers_are_told_if_the_engine_reads_them_back(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    rig.engine.capabilities = replace(rig.engine.capabilities, reads_back=True)
    rig.engine.tiers = lambda: {release.name: "cpu"}  # type: ignore[method-assign]
    beat(agent)
    assert rig.web.reports[-1]["tiers"] == {release.name: "cpu"}


def test_chores_that_take_their_time_do_not_hold_up_the_pulse(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    rig.web.unknown = [release.name]
    stop, slow = Event(), Event()
    unload = rig.engine.unload

    def slowly(name: str) -> None:
        slow.wait(5)
        unload(name)

    rig.engine.unload = slowly  # type: ignore[method-assign]
    original = rig.web.report

    def counting(body: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = original(body)
        if len(rig.web.reports) == 4:
            slow.set()
            stop.set()
        return answer

    rig.web.report = counting  # type: ignore[method-assign]
    Heartbeat(agent).run(stop, interval_s=0.001)
    assert len(rig.web.reports) == 4


def test_an_answer_with_names_that_are_none_is_heeded_in_the_rest(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, _ = loaded
    rig.engine.roots["by-hand"] = "/elsewhere"
    rig.web.unknown = [{}, "by-hand"]  # type: ignore[list-item]
    rig.web.answer = {"limits": {"disk_bytes": float("inf"), "concurrent_downloads": float("inf")}}
    beat(agent)
    assert "by-hand" not in rig.engine.roots


def test_a_full_disk_that_hinders_an_unload_does_not_hinder_the_deletions_that_free_it(
    rig: Rig, loaded: tuple[Agent, Release], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, release = loaded
    evict(agent, parse_evict(release.evict()))
    other = rig.release(version="v2", seed=2)
    warm(agent, parse_warm(other.warm()))
    rig.web.unknown = [other.name]
    rig.clock.time += 1000

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workers.node.disk.tombstones.write_json", full)
    beat(agent)
    assert agent.cache.names() == (other.name,)


def test_files_that_the_engine_reads_under_another_name_stay_for_the_grace_after_it_is_unloaded(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    evict(agent, parse_evict(release.evict()))
    rig.engine.roots["by-hand"] = str(agent.cache.folder(release.name))
    rig.clock.time += 1000
    rig.web.unknown = ["by-hand"]
    heart = beat(agent)
    assert rig.engine.roots == {}
    assert agent.cache.names() == (release.name,)
    rig.clock.time += 11
    heart.beat()
    assert agent.cache.names() == ()


def test_a_plugin_that_fails_or_is_slow_does_not_make_the_engine_look_away(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    rig.engine.capabilities = replace(rig.engine.capabilities, reads_back=True)

    def slow() -> None:
        raise EngineAwayError("the engine does not answer: ReadTimeout")

    rig.engine.tiers = slow  # type: ignore[method-assign]
    beat(agent)
    last = rig.web.reports[-1]
    assert (last["engine_healthy"], last["tiers"]) == (True, None)
    assert [adapter["name"] for adapter in last["loaded"]] == [release.name]
