import asyncio

import pytest

from gateway.errors import ClientGone
from gateway.wire.asgi import Message, Responder


async def test_a_client_that_takes_nothing_for_too_long_counts_as_gone() -> None:
    async def send(_message: Message) -> None:
        await asyncio.Event().wait()

    responder = Responder(send, request_id="req-1", patience_s=0.05)
    with pytest.raises(ClientGone):
        await responder.chunk(b"x")
