"""uvicorn as a gateway runs it, and its end: `/readyz` says no, then nothing new is taken, then what is there ends."""

import socket
import time
from types import FrameType

import uvicorn

from gateway.app import Lifecycle, create_app
from gateway.metrics.pages import Pages
from gateway.settings import Settings

_BACKLOG = 2048


class GatewayServer(uvicorn.Server):
    """Ends in two steps where a notice is wanted; a second signal ends it at once."""

    def __init__(self, config: uvicorn.Config, lifecycle: Lifecycle, *, notice_s: float) -> None:
        """Say for `notice_s` seconds that the end has come before connections are refused."""
        super().__init__(config)
        self._lifecycle = lifecycle
        self._notice_s = notice_s
        self._ends_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See uvicorn: a signal came."""
        self._lifecycle.is_draining = True
        if self._notice_s <= 0 or self._ends_at is not None:
            super().handle_exit(sig, frame)
        else:
            self._ends_at = time.monotonic() + self._notice_s
            self._captured_signals.append(sig)

    async def on_tick(self, counter: int) -> bool:
        """See uvicorn: ten times a second."""
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            self.should_exit = True
        return await super().on_tick(counter)


def listen(host: str, port: int, *, count: int) -> list[socket.socket]:
    """One listening socket for each of `count` processes, all on the same port. Raises OSError.

    The kernel shares connections out among them (SO_REUSEPORT); a single process has the port for itself.
    """
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listeners: list[socket.socket] = []
    try:
        for _ in range(count):
            listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if count > 1:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(listeners[0].getsockname() if len(listeners) > 1 else address)
            listener.listen(_BACKLOG)
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def serve(settings: Settings, listener: socket.socket, place: tuple[int, Pages] | None = None) -> None:
    """Serve on the socket until SIGTERM or SIGINT, then let the requests in flight end.

    `place` is its number among the processes behind one port, and the pages that they share.
    """
    lifecycle = Lifecycle()
    app = create_app(settings, lifecycle, place=place)
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=app.reception,  # type: ignore[arg-type]  # as good as a class: it makes a protocol when called
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=round(settings.drain_s),
    )
    GatewayServer(config, lifecycle, notice_s=settings.drain_notice_s).run(sockets=[listener])
