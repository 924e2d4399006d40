"""`python -m gateway --host HOST --port PORT`: a gateway of one process or several, settings from the environment."""

import argparse
import gc
import logging
import os
import resource
import signal
import socket
import sys
from typing import NoReturn

from gateway.metrics.pages import Pages
from gateway.processes import Processes
from gateway.server import listen, serve
from gateway.settings import Settings, SettingsError


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM or SIGINT, then let the requests in flight end."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    # httpx would log every demand.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        settings = Settings.from_env(_environment(options.processes))
        listeners = listen(options.host, options.port, count=settings.processes)
    except (SettingsError, OSError) as error:
        sys.exit(f"gateway: {error}")
    _open_many_files()
    # The server raises the signal again after it has drained; that is a clean end.
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    if settings.processes == 1:
        serve(settings, listeners[0])
    else:
        _serve_together(settings, listeners)


def _open_many_files() -> None:
    """A client and an engine are two files: take as many as may be had, not the 1,024 that most systems begin with."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _environment(processes: int | None) -> dict[str, str]:
    asked = {} if processes is None else {"LOREKEEPER_GATEWAY_PROCESSES": str(processes)}
    return {**os.environ, **asked}


def _serve_together(settings: Settings, listeners: list[socket.socket]) -> None:
    pages = Pages(len(listeners))

    def work(number: int) -> None:
        _close(listeners[:number] + listeners[number + 1 :])
        serve(settings, listeners[number], (number, pages))

    # What is loaded by now is shared by all: the collector mustn't touch it, or each gets a copy.
    gc.collect()
    gc.freeze()
    Processes(
        len(listeners),
        work,
        patience_s=settings.drain_notice_s + settings.drain_s,
        on_end=lambda: _close(listeners),
    ).run()


def _close(listeners: list[socket.socket]) -> None:
    for listener in listeners:
        listener.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gateway", description="The request path of Lorekeeper.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on (default: %(default)s)")
    parser.add_argument(
        "--processes", type=int, help="how many processes answer there (default: LOREKEEPER_GATEWAY_PROCESSES, or 1)"
    )
    return parser


def _end(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
