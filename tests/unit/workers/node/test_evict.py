from typing import Any

import pytest

from registry.signing.grants import EVICT, LOAD
from tests.unit.workers.node.kit import Release, Rig
from workers.node.agent import Agent
from workers.node.commands import parse_evict, parse_warm
from workers.node.evict import evict, sweep
from workers.node.warm import warm


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
    grant = release.grant(**{"generation": 2, "action": EVICT, **change})
    outcome = evict(agent, parse_evict({**release.evict(), "grant": grant}))
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
    evict(agent, parse_evict({**release.evict(), "generation": 2**63 - 1}))
    outcome = warm(agent, parse_warm(release.warm(generation=2)))
    assert outcome is not None
    assert outcome.outcome == "loaded"
