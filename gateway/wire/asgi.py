"""The small part of ASGI that the gateway uses: uvicorn tells by it when to start and when to stop.

Requests don't come this way. ASGI tells of a client that left by `receive` alone, which takes a task of its own per
request to listen to, and of one that reads slowly not at all; and a task, a scope and two messages checked by the
server cost more than all that the gateway does. So requests go from the server's protocol (`gateway.wire.protocol`) to
the service, and answers to the connection (`gateway.wire.connection`).
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
