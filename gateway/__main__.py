"""`python -m gateway --host HOST --port PORT`: one gateway process, settings from the environment."""

import argparse
import logging
import os
import signal
import sys
from typing import NoReturn

import uvicorn

from gateway.app import create_app
from gateway.settings import Settings, SettingsError
from gateway.wire.protocol import BoundedHttp


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM or SIGINT, then let the requests in flight end."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # httpx would log every upstream request.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        settings = Settings.from_env(os.environ)
    except SettingsError as error:
        sys.exit(f"gateway: {error}")
    # The server raises the signal again after it has drained; that is a clean end.
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    uvicorn.run(
        create_app(settings),
        host=options.host,
        port=options.port,
        loop="uvloop",
        http=BoundedHttp,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=round(settings.drain_s),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gateway", description="The request path of Lorekeeper.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on (default: %(default)s)")
    return parser


def _end(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
