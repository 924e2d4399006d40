from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import pytest

from workers.node.engines.batches import Batcher
from workers.node.errors import EngineAwayError, EngineError, EngineRefusedError


class Engine:
    """Notes each batch; `errors` are what it says of names, `held` keeps it busy."""

    def __init__(self) -> None:
        self.batches: list[set[str]] = []
        self.errors: dict[str, EngineError] = {}
        self.begun = Event()
        self.held = Event()
        self.held.set()
        self._one = Lock()

    def apply(self, items: Mapping[str, str]) -> Mapping[str, EngineError]:
        assert self._one.acquire(blocking=False), "two batches at once"
        self.batches.append(set(items))
        self.begun.set()
        self.held.wait(5)
        self._one.release()
        return self.errors


def test_what_comes_while_a_batch_is_applied_goes_together_into_the_next() -> None:
    engine = Engine()
    engine.held.clear()
    waiting = Event()
    batcher = Batcher(engine.apply, window_s=0.0, sleep=lambda _: None)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(batcher.submit, "a", "/a")
        assert engine.begun.wait(5)
        rest = [pool.submit(batcher.submit, name, f"/{name}") for name in ("b", "c", "d")]
        while len(batcher._open.items if batcher._open else ()) < 3:
            waiting.wait(0.005)
        engine.held.set()
        for each in (first, *rest):
            each.result(5)
    assert engine.batches == [{"a"}, {"b", "c", "d"}]


def test_the_window_is_slept_before_the_first_is_applied() -> None:
    slept: list[float] = []
    Batcher(Engine().apply, window_s=2.0, sleep=slept.append).submit("a", "/a")
    assert slept == [2.0]


def test_each_gets_its_own_error() -> None:
    engine = Engine()
    engine.errors = {"a": EngineRefusedError("never a")}
    batcher = Batcher(engine.apply, window_s=0.0, sleep=lambda _: None)
    with pytest.raises(EngineRefusedError, match="never a"):
        batcher.submit("a", "/a")
    batcher.submit("b", "/b")


def test_an_error_of_the_whole_is_everybodys() -> None:
    def fail(_: Mapping[str, str]) -> Mapping[str, EngineError]:
        raise EngineAwayError("no way")

    with pytest.raises(EngineAwayError, match="no way"):
        Batcher(fail, window_s=0.0, sleep=lambda _: None).submit("a", "/a")


def test_an_unforeseen_end_is_no_success_for_those_who_waited() -> None:
    engine = Engine()
    engine.held.clear()

    def break_down(items: Mapping[str, str]) -> Mapping[str, EngineError]:
        if "b" in items:
            raise ZeroDivisionError
        return engine.apply(items)

    batcher = Batcher(break_down, window_s=0.0, sleep=lambda _: None)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(batcher.submit, "a", "/a")
        assert engine.begun.wait(5)
        rest = [pool.submit(batcher.submit, name, "/x") for name in ("b", "c")]
        while len(batcher._open.items if batcher._open else ()) < 2:
            Event().wait(0.005)
        engine.held.set()
        first.result(5)
        ends = {type(each.exception(5)) for each in rest}
    assert ends == {ZeroDivisionError, EngineAwayError}


def test_who_is_to_be_alone_shares_with_nobody() -> None:
    engine, slept = Engine(), list[float]()
    batcher = Batcher(engine.apply, window_s=2.0, sleep=slept.append)
    batcher.submit("suspect", "/s", alone=True)
    assert engine.batches == [{"suspect"}]
    assert slept == [0.0]
