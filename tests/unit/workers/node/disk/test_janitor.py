"""What the agent deletes by itself, and what it never does."""

from dataclasses import replace

import pytest

from registry.reports import ProbeReference
from tests.unit.workers.node.kit import Release, Rig
from workers.node.agent import Agent
from workers.node.commands import parse_evict, parse_fetch, parse_warm
from workers.node.disk.janitor import keep_marks, make_room, sweep
from workers.node.disk.marks import Drop
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.errors import EngineAwayError, EngineFullError
from workers.node.jobs.evict import evict
from workers.node.jobs.fetch import fetch
from workers.node.jobs.warm import warm
from workers.node.limits import Limits

NOTHING: frozenset[str] = frozenset()


@pytest.fixture
def held(rig: Rig) -> tuple[Agent, list[Release]]:
    """Three versions on disk, the first one used longest ago."""
    agent = rig.agent()
    releases = [rig.release(version=f"v{number}", seed=number) for number in range(3)]
    for release in releases:
        outcome = fetch(agent, parse_fetch(release.fetch()))
        assert outcome is not None
        assert outcome.outcome == "on_disk"
        rig.clock.time += 100
    return agent, releases


def test_beyond_the_high_mark_the_least_used_are_dropped_and_told(held: tuple[Agent, list[Release]]) -> None:
    agent, releases = held
    agent.limits.now = Limits(disk_bytes=agent.cache.used_bytes(), high_water=0.9, low_water=0.5)
    drops = keep_marks(agent, NOTHING)
    assert drops == (Drop(releases[0].name, "pressure"), Drop(releases[1].name, "pressure"))
    assert agent.cache.names() == (releases[2].name,)
    assert agent.dropped.pending() == drops


def test_what_a_floor_guarantees_makes_room_for_nobody(held: tuple[Agent, list[Release]]) -> None:
    agent, releases = held
    guaranteed = frozenset({releases[0].name})
    agent.limits.now = Limits(disk_bytes=agent.cache.used_bytes(), low_water=0.5, guaranteed=guaranteed)
    assert keep_marks(agent, NOTHING) == (Drop(releases[1].name, "pressure"), Drop(releases[2].name, "pressure"))
    assert make_room(agent, 10**12) == ()
    assert agent.cache.names() == (releases[0].name,)


def test_what_was_not_used_for_long_is_dropped(rig: Rig, held: tuple[Agent, list[Release]]) -> None:
    agent, releases = held
    agent.limits.now = Limits(disk_ttl_s=250)
    assert keep_marks(agent, NOTHING) == (Drop(releases[0].name, "ttl"),)
    rig.clock.time += 1000
    agent.cache.note_use([releases[2].name])
    assert keep_marks(agent, NOTHING) == (Drop(releases[1].name, "ttl"),)


def test_what_the_engine_has_is_never_dropped(rig: Rig, held: tuple[Agent, list[Release]]) -> None:
    agent, releases = held
    warm(agent, parse_warm(releases[0].warm(generation=2)))
    rig.clock.time += 10_000
    agent.limits.now = Limits(disk_bytes=1, disk_ttl_s=1)
    keep_marks(agent, NOTHING)
    assert agent.cache.names() == (releases[0].name,)


def test_what_the_engine_may_still_be_reading_is_never_dropped(rig: Rig, held: tuple[Agent, list[Release]]) -> None:
    agent, releases = held
    warm(agent, parse_warm(releases[0].warm(generation=2)))
    evict(agent, parse_evict(releases[0].evict(generation=3, to="disk", grace_s=60)))
    agent.limits.now = Limits(disk_bytes=1)
    keep_marks(agent, NOTHING)
    assert agent.cache.names() == (releases[0].name,)
    assert keep_marks(rig.agent(), NOTHING) == ()
    rig.clock.time += 61
    keep_marks(agent, NOTHING)
    assert agent.cache.names() == ()


def test_what_a_command_works_on_is_never_dropped(held: tuple[Agent, list[Release]]) -> None:
    agent, releases = held
    agent.limits.now = Limits(disk_bytes=1)
    with agent.lanes.enter(releases[0].name, generation=2, act="warm", outranks=True):
        keep_marks(agent, NOTHING)
    assert agent.cache.names() == (releases[0].name,)


def test_nothing_is_dropped_while_the_engine_does_not_answer(rig: Rig, held: tuple[Agent, list[Release]]) -> None:
    agent, _ = held
    agent.limits.now = Limits(disk_bytes=1, disk_ttl_s=0)
    rig.engine.away = True
    assert keep_marks(agent, NOTHING) == ()
    assert len(agent.cache.names()) == 3


def test_an_engine_whose_own_list_is_not_to_be_had_is_believed_to_have_what_it_was_given(rig: Rig) -> None:
    rig.engine.capabilities = replace(CAPABILITIES["lorax"])
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm()))
    rig.engine.roots.clear()
    agent.limits.now = Limits(disk_bytes=1)
    assert keep_marks(agent, NOTHING) == ()
    rig.engine.restart("boot-2")
    agent.watch.look()
    assert keep_marks(agent, NOTHING) == (Drop(release.name, "pressure"),)


def test_what_failed_to_load_is_not_believed_to_be_in_such_an_engine(rig: Rig) -> None:
    rig.engine.capabilities = replace(CAPABILITIES["lorax"])
    release, agent = rig.release(), rig.agent()
    rig.engine.load_error = EngineFullError("no free slots")
    outcome = warm(agent, parse_warm(release.warm()))
    assert outcome is not None
    assert outcome.boot_id == agent.watch.last_id
    rig.clock.time += 10_000
    agent.limits.now = Limits(disk_bytes=1)
    assert keep_marks(agent, NOTHING) == (Drop(release.name, "pressure"),)


def test_room_for_a_download_is_made_of_what_is_used_least(held: tuple[Agent, list[Release]]) -> None:
    agent, releases = held
    agent.limits.now = Limits(disk_bytes=agent.cache.used_bytes())
    assert make_room(agent, len(releases[0].contents["adapter_model.safetensors"])) == (
        Drop(releases[0].name, "pressure"),
    )
    assert make_room(agent, 1) == ()


def test_an_agent_killed_while_it_drops_a_version_leaves_no_note_of_it(
    held: tuple[Agent, list[Release]], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, releases = held
    name = releases[0].name
    agent.references.keep(name, ProbeReference(prompt="p", base=(-1.0,), adapter=(-2.0,)))
    delete = agent.cache.delete

    def killed(doomed: str) -> None:
        delete(doomed)
        raise KeyboardInterrupt

    monkeypatch.setattr(agent.cache, "delete", killed)
    agent.limits.now = Limits(disk_bytes=1)
    with pytest.raises(KeyboardInterrupt):
        keep_marks(agent, NOTHING)
    assert not agent.cache.has(name)
    assert agent.references.of(name) is None


def test_a_version_that_fits_only_without_idle_ones_is_fetched(rig: Rig, held: tuple[Agent, list[Release]]) -> None:
    agent, releases = held
    agent.limits.now = Limits(disk_bytes=agent.cache.used_bytes())
    outcome = fetch(agent, parse_fetch(rig.release(version="v9", seed=9).fetch()))
    assert outcome is not None
    assert outcome.outcome == "on_disk"
    assert releases[0].name not in agent.cache.names()


def test_a_load_that_comes_while_the_marks_are_kept_waits_for_its_lane(
    rig: Rig, held: tuple[Agent, list[Release]]
) -> None:
    """The list of the engine is asked for when the lanes are held: nobody can load in between."""
    agent, releases = held
    agent.limits.now = Limits(disk_bytes=1)
    held_lanes: list[bool] = []
    original = rig.engine.list_loaded

    def asking() -> tuple[object, ...]:
        held_lanes.extend(release.name in agent.lanes._lanes for release in releases)
        return original()

    rig.engine.list_loaded = asking  # type: ignore[method-assign,assignment]
    keep_marks(agent, NOTHING)
    assert held_lanes[-3:] == [True, True, True]


def test_an_engine_that_goes_away_in_the_midst_keeps_its_files(rig: Rig, held: tuple[Agent, list[Release]]) -> None:
    agent, _ = held
    agent.limits.now = Limits(disk_bytes=1)
    looks: list[int] = []

    def once() -> tuple[object, ...]:
        looks.append(1)
        if len(looks) > 1:
            raise EngineAwayError("gone")
        return ()

    rig.engine.list_loaded = once  # type: ignore[method-assign,assignment]
    assert keep_marks(agent, NOTHING) == ()


@pytest.mark.parametrize("end", ["", "/", "/../{name}"])
def test_files_that_the_engine_reads_under_another_name_are_never_deleted(
    rig: Rig, held: tuple[Agent, list[Release]], end: str
) -> None:
    agent, releases = held
    name = releases[0].name
    evict(agent, parse_evict(releases[0].evict()))
    rig.engine.roots["by-hand"] = str(agent.cache.folder(name)) + end.format(name=name)
    rig.clock.time += 10_000
    agent.limits.now = Limits(disk_bytes=1, disk_ttl_s=1)
    sweep(agent)
    keep_marks(agent, NOTHING)
    assert agent.cache.names() == (name,)
