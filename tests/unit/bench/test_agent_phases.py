import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bench.agent import __main__ as bench
from bench.agent import world as world_module
from bench.agent.world import World


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def world_of(*, code: int | None = None, phase_s: float = 60.0) -> World:
    """A world whose agent never answers, and has ended where a `code` is given."""
    agent: Any = SimpleNamespace(process=SimpleNamespace(poll=lambda: code), text=lambda: "its log")
    web: Any = SimpleNamespace(outcomes=[])
    nobody: Any = None
    return World("bench-1", web, agent, nobody, nobody, phase_s)


def test_a_phase_ends_when_its_time_is_up() -> None:
    world = world_of(phase_s=0.01)
    with pytest.raises(TimeoutError, match="loading: it took longer than"), world.phase("loading"):
        world.collect("loaded", at_least=1)


def test_an_agent_that_does_not_get_on_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world_module, "PATIENCE_S", 0.01)
    with pytest.raises(TimeoutError, match="does not get on"):
        world_of().collect("loaded", at_least=1)


def test_an_agent_that_has_ended_is_not_waited_for() -> None:
    with pytest.raises(RuntimeError, match="the agent ended with -9"):
        world_of(code=-9).collect("loaded", at_least=1)


@pytest.mark.parametrize("error", [TimeoutError("loading: too long\nlog"), KeyboardInterrupt()])
def test_the_last_line_says_short_whatever_ends_it(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def node(**_: object) -> Iterator[World]:
        raise error
        yield

    monkeypatch.setattr(bench, "node", node)
    assert bench.main(["--versions", "3"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("bench-agent: short with 3 versions: ")
    assert type(error).__name__ in last


def test_being_told_to_end_is_no_end_without_a_last_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def node(**_: object) -> Iterator[World]:
        signal.raise_signal(signal.SIGTERM)
        yield world_of()

    monkeypatch.setattr(bench, "node", node)
    assert bench.main([]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("bench-agent: short")
