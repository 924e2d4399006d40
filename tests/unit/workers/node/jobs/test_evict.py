from typing import Any

import pytest

from registry.signing.grants import EVICT, LOAD
from tests.unit.workers.node.kit import FullDisk, Release, Rig
from workers.node.agent import Agent
from workers.node.commands import MAX_GENERATION, parse_evict, parse_fetch, parse_warm
from workers.node.disk.janitor import make_room, sweep
from workers.node.jobs.evict import evict
from workers.node.jobs.fetch import fetch
from workers.node.jobs.warm import warm


@pytest.fixture
def loaded(rig: Rig) -> tuple[Agent, Release]:
    release, agent = rig.release(), rig.agent()
    warm(agent, parse_warm(release.warm()))
    return agent, release


def test_a_version_is_unloaded_first_and_deleted_after_the_grace(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    outcome = evict(agent, parse_evict(release.evict(grace_s=60)))
    assert outcome is not None
    assert outcome.outcome == "evicted"
    assert rig.engine.roots == {}
    rig.clock.time += 59
    assert sweep(agent) == ()
    assert agent.cache.names() == (release.name,)
    rig.clock.time += 2
    assert sweep(agent) == (release.name,)
    assert agent.cache.names() == ()
    assert list((rig.root / "blobs").iterdir()) == []


def test_the_nodes_own_grace_is_the_least(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    evict(agent, parse_evict(release.evict(grace_s=0)))
    rig.clock.time += 9
    assert sweep(agent) == ()
    rig.clock.time += 2
    assert sweep(agent) == (release.name,)


def test_files_of_a_name_that_the_engine_lists_are_never_deleted(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    evict(agent, parse_evict(release.evict()))
    rig.engine.roots[release.name] = "loaded by hand"
    rig.clock.time += 1000
    assert sweep(agent) == ()
    assert agent.cache.names() == (release.name,)


def test_nothing_is_deleted_while_the_engine_does_not_answer(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    evict(agent, parse_evict(release.evict()))
    rig.engine.away = True
    rig.clock.time += 1000
    assert sweep(agent) == ()
    rig.engine.away = False
    assert sweep(agent) == (release.name,)


def test_a_restarted_agent_goes_on_with_the_tombstones(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    evict(agent, parse_evict(release.evict()))
    rig.clock.time += 1000
    assert sweep(rig.agent()) == (release.name,)


def test_a_redelivered_evict_is_harmless_and_told_again(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    for _ in range(2):
        evict(agent, parse_evict(release.evict()))
    assert rig.told(agent)[-2:] == ["evicted", "evicted"]


def test_an_evict_that_was_overtaken_is_left_alone(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    warm(agent, parse_warm(release.warm(generation=3)))
    assert evict(agent, parse_evict(release.evict(generation=2))) is None
    assert release.name in rig.engine.roots


def test_an_engine_that_is_away_makes_the_evict_fail_and_keeps_the_files(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    rig.engine.away = True
    outcome = evict(agent, parse_evict(release.evict()))
    assert outcome is not None
    assert (outcome.outcome, outcome.error_class) == ("failed", "transient")
    assert agent.tombstones.names() == ()
    rig.engine.away = False
    again = evict(agent, parse_evict(release.evict()))
    assert again is not None
    assert again.outcome == "evicted"


def test_files_that_another_version_shares_stay(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    other = rig.release(version="2026-07-04.2")
    warm(agent, parse_warm(other.warm()))
    evict(agent, parse_evict(release.evict()))
    rig.clock.time += 1000
    sweep(agent)
    command = parse_warm(other.warm())
    agent.verifier.folder(agent.cache.folder(other.name), command, agent.verifier.grant(command))


@pytest.mark.parametrize(
    "change", [{"action": LOAD}, {"generation": 3}, {"node": "edge-2"}, {"engine_name": "lk-other"}], ids=str
)
def test_an_evict_without_a_grant_for_it_changes_nothing(
    rig: Rig, loaded: tuple[Agent, Release], change: dict[str, Any]
) -> None:
    agent, release = loaded
    outcome = evict(agent, parse_evict(release.evict(granted=change)))
    assert outcome is not None
    assert (outcome.outcome, outcome.error_class) == ("failed", "refused")
    assert release.name in rig.engine.roots
    assert agent.tombstones.names() == ()
    genuine = evict(agent, parse_evict(release.evict()))
    assert genuine is not None
    assert genuine.outcome == "evicted"


def test_a_forged_evict_of_a_high_generation_does_not_void_later_commands(
    rig: Rig, loaded: tuple[Agent, Release]
) -> None:
    agent, release = loaded
    evict(agent, parse_evict({**release.evict(), "generation": MAX_GENERATION}))
    outcome = warm(agent, parse_warm(release.warm(generation=2)))
    assert outcome is not None
    assert outcome.outcome == "loaded"


def test_a_version_that_goes_to_the_disk_keeps_its_files(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    outcome = evict(agent, parse_evict(release.evict(to="disk")))
    assert outcome is not None
    assert outcome.outcome == "on_disk"
    assert rig.engine.roots == {}
    rig.clock.time += 10_000
    assert sweep(agent) == ()
    assert agent.cache.names() == (release.name,)


def test_one_whose_files_are_gone_can_not_go_to_the_disk(rig: Rig) -> None:
    agent = rig.agent()
    outcome = evict(agent, parse_evict(rig.release().evict(to="disk")))
    assert outcome is not None
    assert (outcome.outcome, outcome.error_class) == ("failed", "transient")


def test_an_evict_to_nowhere_after_one_to_the_disk_deletes_the_files(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    evict(agent, parse_evict(release.evict(generation=2, to="disk")))
    evict(agent, parse_evict(release.evict(generation=3)))
    rig.clock.time += 11
    assert sweep(agent) == (release.name,)


def test_files_that_are_wanted_again_within_the_grace_are_not_deleted(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    evict(agent, parse_evict(release.evict(generation=2)))
    fetched = fetch(agent, parse_fetch(release.fetch(generation=3)))
    assert fetched is not None
    assert fetched.outcome == "on_disk"
    rig.clock.time += 1000
    assert sweep(agent) == ()
    assert agent.cache.names() == (release.name,)


def test_a_fetch_takes_it_out_of_the_engine_if_it_is_still_there(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    outcome = fetch(agent, parse_fetch(release.fetch(generation=2)))
    assert outcome is not None
    assert outcome.outcome == "on_disk"
    assert rig.engine.roots == {}


def test_a_fetch_needs_no_engine(rig: Rig) -> None:
    rig.engine.away = True
    outcome = fetch(rig.agent(), parse_fetch(rig.release().fetch()))
    assert outcome is not None
    assert outcome.outcome == "on_disk"


@pytest.mark.parametrize("action", [LOAD, EVICT])
def test_a_fetch_needs_a_grant_to_fetch(rig: Rig, action: str) -> None:
    release, agent = rig.release(), rig.agent()
    outcome = fetch(agent, parse_fetch(release.fetch(granted={"action": action})))
    assert outcome is not None
    assert (outcome.outcome, outcome.error_class) == ("failed", "refused")
    assert agent.cache.names() == ()


def test_requests_of_the_name_are_waited_for_before_it_is_unloaded(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    rig.engine.busy = frozenset({release.name})
    began = rig.clock.time
    outcome = evict(agent, parse_evict(release.evict(drain_s=3)))
    assert outcome is not None
    assert outcome.outcome == "evicted"
    assert rig.clock.time - began == pytest.approx(3, abs=0.1)


def test_a_note_that_the_files_may_be_read_comes_before_the_unload(rig: Rig, loaded: tuple[Agent, Release]) -> None:
    agent, release = loaded
    noted: list[bool] = []
    unload = rig.engine.unload

    def noting(name: str) -> None:
        noted.append(rig.agent().tombstones.may_be_read(name))
        unload(name)

    rig.engine.unload = noting  # type: ignore[method-assign]
    evict(agent, parse_evict(release.evict(to="disk")))
    assert noted == [True]


def test_what_is_on_a_full_disk_goes_on_changing_places_in_the_engine(
    rig: Rig, loaded: tuple[Agent, Release], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, release = loaded
    other, third = rig.release(version="other"), rig.release(version="third", seed=3)
    fetch(agent, parse_fetch(other.fetch()))
    FullDisk(is_full=True).install(monkeypatch)
    outcomes = [
        evict(agent, parse_evict(release.evict(to="disk"))),
        warm(agent, parse_warm(other.warm(generation=2))),
        warm(agent, parse_warm(third.warm())),
    ]
    assert [outcome.outcome for outcome in outcomes if outcome] == ["on_disk", "loaded", "failed"]
    assert set(rig.engine.roots) == {other.name}
    assert "disk_full" in str(outcomes[-1])


def test_files_of_an_unload_that_could_not_be_noted_are_spared_by_the_next_process_as_well(
    rig: Rig, loaded: tuple[Agent, Release], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, release = loaded
    disk = FullDisk(is_full=True)
    disk.install(monkeypatch)
    evict(agent, parse_evict(release.evict(to="disk")))
    disk.is_full = False
    restarted = rig.agent()
    make_room(restarted, 2**60)
    assert restarted.cache.names() == (release.name,)
    rig.clock.time += 11
    make_room(restarted, 2**60)
    assert restarted.cache.names() == ()
