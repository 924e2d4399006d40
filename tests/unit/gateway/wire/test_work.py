import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from gateway.wire.work import Signal, Work


class Begun:
    """A coroutine begun from a callback of the loop, and how it ended."""

    def __init__(self, coroutine: Coroutine[Any, None, None]) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[BaseException | None] = loop.create_future()
        self.work = Work(coroutine, loop, lambda _work, error: self.ended.set_result(error))
        loop.call_soon(self.work.begin)

    async def error(self) -> BaseException | None:
        return await asyncio.wait_for(self.ended, 2)


async def test_work_runs_to_its_end_in_the_call_that_begins_it() -> None:
    ended: list[BaseException | None] = []

    async def work() -> None:
        pass

    def begin() -> None:
        Work(work(), asyncio.get_running_loop(), lambda _work, error: ended.append(error)).begin()
        ended.append(ValueError())

    asyncio.get_running_loop().call_soon(begin)
    await asyncio.sleep(0)
    assert ended[0] is None


async def test_what_work_raises_is_told() -> None:
    async def work() -> None:
        raise ValueError

    assert isinstance(await Begun(work()).error(), ValueError)


async def test_work_goes_on_in_the_call_that_fires_its_signal() -> None:
    loop = asyncio.get_running_loop()
    signal, done = Signal(loop), []

    async def work() -> None:
        await signal
        done.append("work")

    def fire() -> None:
        signal.fire()
        done.append("fired")

    begun = Begun(work())
    loop.call_soon(fire)
    assert await begun.error() is None
    assert done == ["work", "fired"]


async def test_a_signal_fired_by_another_task_is_heard_after_it() -> None:
    signal, done = Signal(asyncio.get_running_loop()), []

    async def work() -> None:
        await signal
        done.append("work")

    begun = Begun(work())
    await asyncio.sleep(0)
    signal.fire()
    done.append("fired")
    assert await begun.error() is None
    assert done == ["fired", "work"]


async def test_tasks_wait_for_signals_too_and_one_that_was_fired_before_is_not_waited_for() -> None:
    signal = Signal(asyncio.get_running_loop())

    async def wait() -> str:
        await signal
        return "heard"

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(signal.fire)
    assert await task == "heard"
    assert await wait() == "heard"


async def test_a_task_that_waits_for_a_signal_can_be_cancelled() -> None:
    async def wait() -> None:
        await Signal(asyncio.get_running_loop())

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("kind", ["signal", "future", "sleep", "pause"])
async def test_work_is_cancelled_at_whatever_it_waits_for(kind: str) -> None:
    ended = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        try:
            if kind == "signal":
                await Signal(loop)
            elif kind == "future":
                await loop.create_future()
            elif kind == "sleep":
                await asyncio.sleep(30)
            else:
                while True:  # noqa: ASYNC110  a pause is what is cancelled
                    await asyncio.sleep(0)
        finally:
            ended.append(True)

    begun = Begun(work())
    asyncio.get_running_loop().call_later(0.01, begun.work.cancel)
    assert isinstance(await begun.error(), asyncio.CancelledError)
    assert ended


async def test_time_limits_and_tasks_work_within() -> None:
    said = []

    async def work() -> None:
        said.append(await asyncio.create_task(asyncio.sleep(0, "task")))
        try:
            async with asyncio.timeout(0.01):
                await Signal(asyncio.get_running_loop())
        except TimeoutError:
            said.append("late")
        async with asyncio.timeout(5):
            await asyncio.sleep(0.001)
        said.append("in time")

    assert await Begun(work()).error() is None
    assert said == ["task", "late", "in time"]


async def test_a_cancel_while_time_is_limited_is_no_timeout() -> None:
    async def work() -> None:
        async with asyncio.timeout(10):
            await asyncio.sleep(10)

    begun = Begun(work())
    asyncio.get_running_loop().call_later(0.01, begun.work.cancel)
    assert isinstance(await begun.error(), asyncio.CancelledError)
