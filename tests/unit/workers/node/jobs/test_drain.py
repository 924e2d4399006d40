from dataclasses import replace

import pytest

from tests.unit.workers.node.kit import Clock, MemoryEngine
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.errors import SupersededError
from workers.node.jobs.drain import Drain


class Ending(MemoryEngine):
    """Its requests end after some looks."""

    looks: int = 0

    def in_use(self) -> frozenset[str] | None:  # type: ignore[override]
        self.looks += 1
        return super().in_use() if self.looks <= 3 else frozenset()


def drain(engine: MemoryEngine, clock: Clock | None = None) -> Drain:
    ticking = clock or Clock()
    return Drain(engine, clock=ticking, sleep=ticking.sleep)


def test_an_idle_name_is_not_waited_for() -> None:
    clock = Clock()
    assert drain(MemoryEngine(busy=frozenset({"lk-b"})), clock).wait("lk-a", seconds=30)
    assert clock.time == Clock().time


def test_its_requests_are_waited_for() -> None:
    engine, clock = Ending(busy=frozenset({"lk-a"})), Clock()
    assert drain(engine, clock).wait("lk-a", seconds=30)
    assert 0.1 <= clock.time - Clock().time < 1


def test_the_wait_has_an_end() -> None:
    clock = Clock()
    assert not drain(MemoryEngine(busy=frozenset({"lk-a"})), clock).wait("lk-a", seconds=2)
    assert clock.time - Clock().time == pytest.approx(2, abs=0.1)


def test_an_engine_that_can_not_tell_at_the_moment_is_waited_for() -> None:
    class Silent(MemoryEngine):
        def in_use(self) -> frozenset[str] | None:  # type: ignore[override]
            return None

    assert not drain(Silent()).wait("lk-a", seconds=1)


def test_an_engine_of_a_kind_that_never_tells_is_not_waited_for() -> None:
    engine = MemoryEngine(capabilities=replace(CAPABILITIES["vllm"], reports_in_use=False), busy=frozenset({"lk-a"}))
    assert drain(engine).wait("lk-a", seconds=30)


def test_an_engine_that_is_away_is_not_waited_for() -> None:
    assert drain(MemoryEngine(away=True)).wait("lk-a", seconds=30)


def test_a_newer_command_ends_the_wait() -> None:
    def check() -> None:
        raise SupersededError("newer")

    with pytest.raises(SupersededError):
        drain(MemoryEngine(busy=frozenset({"lk-a"}))).wait("lk-a", seconds=30, check=check)


def test_those_who_wait_together_share_one_question() -> None:
    engine, clock = Ending(busy=frozenset({"lk-a"})), Clock()
    shared = drain(engine, clock)
    assert shared.wait("lk-b", seconds=0)
    assert shared.wait("lk-c", seconds=0)
    assert engine.looks == 1
