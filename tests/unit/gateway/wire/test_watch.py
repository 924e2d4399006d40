import asyncio

import pytest

from gateway.errors import ClientGone, NoNode
from gateway.wire.asgi import Message
from gateway.wire.watch import until_gone


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def gone() -> Message:
    await asyncio.sleep(0.01)
    return {"type": "http.disconnect"}


async def test_work_is_done_while_the_client_is_there() -> None:
    done = []

    async def work() -> None:
        done.append(True)

    await until_gone(never, work())
    assert done


async def test_an_error_of_the_work_passes_through() -> None:
    async def work() -> None:
        raise NoNode("none")

    with pytest.raises(NoNode):
        await until_gone(never, work())


async def test_work_is_cancelled_when_the_client_goes() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            ended.append(True)

    with pytest.raises(ClientGone):
        await until_gone(gone, work())
    assert ended


async def test_cancelling_from_outside_cancels_the_work() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            ended.append(True)

    task = asyncio.create_task(until_gone(never, work()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended
