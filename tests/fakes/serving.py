"""What the contract servers of all engines share: routes, faults, answers, and a server in a thread.

Each one also takes ``POST /fake/faults`` (a partial object of its faults) and ``POST /fake/restart`` (as a new process
would be), and shows ``GET /fake/state``.
"""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, fields
from http import HTTPStatus
from typing import Any, Self

import uvicorn

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: a JSON value, plain text, or a stream of server-sent events."""

    status: int = 200
    body: Any = ""
    events: tuple[str, ...] = ()


class Refusal(Exception):
    """An error answer, in the engine's own form."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(str(answer.body))
        self.answer = answer


class EngineDiedError(Exception):
    """The whole server ends."""


Handler = Callable[[Message], Awaitable[Answer]]


class FakeApp:
    """The ASGI application. Subclasses give `state` (with `restart`), `faults` (a dataclass) and `routes`."""

    state: Any
    faults: Any
    on_exit: Callable[[], None]

    def routes(self) -> dict[tuple[str, str], Handler]:
        raise NotImplementedError

    def refusal(self, status: HTTPStatus, text: str) -> Refusal:
        """An error in this engine's form."""
        raise NotImplementedError

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _read_body(receive)
        try:
            answer = await self._answer(scope["method"], scope["path"], body)
        except Refusal as error:
            answer = error.answer
        except EngineDiedError:
            self.on_exit()
            await asyncio.sleep(0)
            return
        await self._send(answer, send)

    async def _answer(self, method: str, path: str, body: bytes) -> Answer:
        known = {
            **self.routes(),
            ("POST", "/fake/faults"): self._set_faults,
            ("POST", "/fake/restart"): self._restart,
            ("GET", "/fake/state"): self._show_state,
        }
        handler = known.get((method, path))
        if handler is None:
            raise self.refusal(HTTPStatus.NOT_FOUND, "Not Found")
        try:
            payload = json.loads(body) if body else {}
        except ValueError as error:
            raise self.refusal(HTTPStatus.BAD_REQUEST, f"[{error}]") from error
        return await handler(payload)

    async def _send(self, answer: Answer, send: Send) -> None:
        kind = b"text/event-stream; charset=utf-8" if answer.events else b"application/json"
        text = isinstance(answer.body, str)
        headers = [(b"content-type", b"text/plain; charset=utf-8" if text and not answer.events else kind)]
        await send({"type": "http.response.start", "status": int(answer.status), "headers": headers})
        for event in answer.events:
            await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
            await asyncio.sleep(self.faults.token_delay_s)
        payload = b"" if answer.events else (answer.body if text else json.dumps(answer.body)).encode()
        await send({"type": "http.response.body", "body": payload})

    async def _set_faults(self, body: Message) -> Answer:
        known = {each.name for each in fields(self.faults)}
        if unknown := sorted(set(body) - known):
            raise self.refusal(HTTPStatus.BAD_REQUEST, f"unknown faults: {', '.join(unknown)}")
        for name, value in body.items():
            setattr(self.faults, name, value)
        return Answer(body=asdict(self.faults))

    async def _restart(self, _: Message) -> Answer:
        self.state.restart()
        return await self._show_state({})

    async def _show_state(self, _: Message) -> Answer:
        return Answer(body={**asdict(self.state), "faults": asdict(self.faults)})


async def _read_body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


class FakeServer:
    """A contract server on a loopback port in a thread of this process; a context manager."""

    def __init__(self, app: FakeApp, *, port: int = 0) -> None:
        app.on_exit = self._die
        self._app = app
        self._port = port
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens, or listened last, without a trailing slash."""
        return f"http://127.0.0.1:{self._port}"

    def reset(self) -> None:
        """As new: up, knowing nothing, with nothing wrong."""
        self.restart()
        self._app.faults = type(self._app.faults)()
        if not self.alive:
            self.launch()

    @property
    def alive(self) -> bool:
        """Whether the server still runs (some end themselves when an adapter's files are gone)."""
        return self._thread is not None and self._thread.is_alive()

    def launch(self) -> None:
        """Listen, on the same port as before if there was one."""
        config = uvicorn.Config(
            self._app, host="127.0.0.1", port=self._port, log_level="warning", lifespan="off", ws="none"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="fake-engine", daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self.alive:
                msg = "the fake engine did not start"
                raise RuntimeError(msg)
            time.sleep(0.01)
        self._port = self._server.servers[0].sockets[0].getsockname()[1]

    def halt(self) -> None:
        """Stop listening, and break off what runs."""
        self._exit()
        self.join()

    def restart(self) -> object:
        """As if a new process had taken its place, without the time that takes."""
        return self._app.state.restart()

    def __enter__(self) -> Self:
        self.launch()
        return self

    def __exit__(self, *_: object) -> None:
        self.halt()

    def join(self) -> None:
        """Wait until a server that was stopped, or died, is gone."""
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _die(self) -> None:
        """From within the server's own loop: nobody gets an answer any more."""
        if self._server is not None:
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
        self._exit()

    def _exit(self) -> None:
        if self._server is not None:
            self._server.should_exit = self._server.force_exit = True
