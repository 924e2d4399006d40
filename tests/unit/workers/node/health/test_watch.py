import pytest

from tests.unit.workers.node.kit import Clock, MemoryEngine
from workers.node.engines.ports import Boot
from workers.node.errors import EngineAwayError
from workers.node.health.watch import EngineWatch


class Counting(MemoryEngine):
    asked: int = 0

    def boot(self) -> Boot:
        self.asked += 1
        return super().boot()


def test_what_was_seen_a_moment_ago_is_not_asked_again() -> None:
    engine, clock = Counting(), Clock()
    watch = EngineWatch(engine, clock=clock)
    watch.look()
    clock.time += 2
    assert watch.recent(max_age_s=3).id == "boot-1"
    assert engine.asked == 1
    clock.time += 2
    watch.recent(max_age_s=3)
    assert engine.asked == 2


def test_an_engine_that_was_not_well_or_away_is_asked_again() -> None:
    engine = Counting(healthy=False)
    watch = EngineWatch(engine, clock=Clock())
    assert not watch.look().healthy
    engine.healthy = True
    assert watch.recent(max_age_s=3).healthy
    engine.away = True
    with pytest.raises(EngineAwayError):
        watch.look()
    engine.away = False
    engine.boot_id = "boot-2"
    assert watch.recent(max_age_s=3).id == "boot-2"


def test_its_last_life_is_remembered_while_it_is_away() -> None:
    engine = MemoryEngine()
    watch = EngineWatch(engine, clock=Clock())
    assert watch.last_id == ""
    watch.look()
    engine.away = True
    with pytest.raises(EngineAwayError):
        watch.look()
    assert watch.last_id == "boot-1"


def test_an_engine_that_is_doubted_is_not_well_whatever_it_says_until_it_is_trusted_or_another() -> None:
    engine = MemoryEngine()
    watch = EngineWatch(engine, clock=Clock())
    watch.look()
    watch.doubt("boot-1", "it generates nothing")
    assert not watch.recent(max_age_s=3).healthy
    assert not watch.look().healthy
    engine.boot_id = "boot-2"
    assert watch.look().healthy
    engine.boot_id = "boot-1"
    watch.trust()
    assert watch.look().healthy
