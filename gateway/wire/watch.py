"""Stopping work for a client that went away."""

import asyncio
from collections.abc import Coroutine

from gateway.errors import ClientGone
from gateway.wire.asgi import Receive


async def until_gone(receive: Receive, work: Coroutine[None, None, None]) -> None:
    """Do the work, or cancel it and raise ClientGone as soon as the client disconnects.

    The request's body must have been read: from then on `receive` tells of nothing but the disconnect.
    """
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_disconnect(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
