from typing import Any

import pytest

from tests.unit.workers.node.kit import Clock, MemoryEngine, Rig
from workers.node.commands import parse_warm
from workers.node.engines.connection import EngineGoneError, EngineSlowError
from workers.node.engines.ports import Boot
from workers.node.errors import EngineError
from workers.node.health.standstill import Patience, Standstill
from workers.node.heartbeat import Heartbeat
from workers.node.jobs.warm import warm

LIFE = "boot-1"


class World:
    """An engine at work on what its agent asked."""

    def __init__(self, patience: Patience | None = None) -> None:
        self.engine, self.clock, self.asked = MemoryEngine(steps=7.0), Clock(), True
        self.standstill = Standstill(
            self.engine, patience or Patience(50, 600, 240), is_asked=lambda: self.asked, clock=self.clock
        )

    def looks(self, seconds: float, *, life: str = LIFE, error: EngineError | None = None) -> str:
        """What is said after looking every other second for so long."""
        said = self.standstill.look(life, error)
        for _ in range(int(seconds / 2)):
            self.clock.time += 2
            said = self.standstill.look(life, error)
        return said


def test_an_engine_that_does_nothing_though_it_is_asked_hangs() -> None:
    world = World()
    assert world.looks(48) == ""
    assert "has done nothing for" in world.looks(4)


def test_one_that_loads_may_take_as_long_as_a_load_may() -> None:
    """It reads from a slow disk, and makes no step meanwhile."""
    world = World()
    world.looks(40)
    with world.standstill.loading():
        assert world.looks(238) == ""
        assert "was asked to load, and has done nothing for" in world.looks(4)
    assert world.looks(48) == ""
    assert "has done nothing for" in world.looks(4)


def test_one_that_goes_on_step_by_step_has_much_to_do() -> None:
    world = World()
    for step in range(40):
        world.engine.steps = float(step)
        assert world.looks(48) == ""


def test_one_that_nobody_asks_may_do_nothing() -> None:
    world = World()
    world.looks(40)
    world.asked = False
    assert world.looks(1000) == ""
    world.asked = True
    assert world.looks(48) == ""


def test_one_that_does_not_tell_its_steps_is_left_alone() -> None:
    world = World()
    world.engine.steps = None
    assert world.looks(1000) == ""


def test_one_that_listens_and_says_nothing_gets_as_long_as_a_start_takes() -> None:
    world = World()
    silent = EngineSlowError("no answer")
    assert world.looks(598, error=silent) == ""
    assert "has not answered for" in world.looks(4, error=silent)


@pytest.mark.parametrize(("life", "error"), [("", EngineSlowError("no answer")), (LIFE, EngineGoneError("nobody"))])
def test_one_that_was_never_heard_of_or_is_gone_is_not_ours_to_restart(life: str, error: EngineError) -> None:
    assert World().looks(5000, life=life, error=error) == ""


def test_another_life_begins_anew() -> None:
    world = World()
    world.looks(48)
    assert world.looks(48, life="boot-2") == ""


def test_a_patience_of_zero_does_without() -> None:
    assert World(Patience(0, 600, 240)).looks(5000) == ""


def test_one_that_falls_silent_when_its_steps_are_asked_for_counts_as_silent() -> None:
    world = World()
    world.engine.progress = lambda: (_ for _ in ()).throw(EngineSlowError("no answer"))  # type: ignore[method-assign]
    assert world.looks(598) == ""
    assert "has not answered for" in world.looks(4)


def test_a_hung_engine_is_told_as_poisoned_though_it_says_it_is_well(rig: Rig) -> None:
    rig.engine.steps = 3.0
    agent = rig.agent()
    heart = Heartbeat(agent)
    with agent.turn.take():
        heart.beat()
        rig.clock.time += 51
        heart.beat()
    last = rig.web.reports[-1]
    assert (last["poisoned"], last["engine_healthy"]) == (True, False)


def test_an_engine_that_reads_a_large_version_from_a_slow_disk_is_not_told_as_poisoned(rig: Rig) -> None:
    rig.engine.steps = 3.0
    agent, load = rig.agent(), rig.engine.load
    heart = Heartbeat(agent)

    def slow_load(**asked: Any) -> None:
        for _ in range(40):
            rig.clock.time += 5
            heart.beat()
        load(**asked)

    rig.engine.load = slow_load  # type: ignore[method-assign]
    end = warm(agent, parse_warm(rig.release().warm()))
    assert end is not None
    assert end.outcome == "loaded"
    assert not any(report["poisoned"] for report in rig.web.reports)


def test_an_engine_whose_api_hangs_is_told_as_poisoned_too(rig: Rig) -> None:
    agent = rig.agent()
    heart = Heartbeat(agent)
    heart.beat()

    def silent() -> Boot:
        raise EngineSlowError("no answer")

    rig.engine.boot = silent  # type: ignore[method-assign]
    heart.beat()
    rig.clock.time += 601
    heart.beat()
    last = rig.web.reports[-1]
    assert (last["poisoned"], last["boot_id"]) == (True, LIFE)
