"""`python -m deploy.embedded up`: run the embedded stack until Ctrl-C.

`down` stops the one that runs elsewhere, `restart NAME` one of its processes.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.embedded.errors import AlreadyRunning, EmbeddedError
from deploy.embedded.facts import EngineOptions
from deploy.embedded.output import Console
from deploy.embedded.restart import restart_process
from deploy.embedded.stack import Stack
from deploy.embedded.system.lock import holder_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_DOWN_SECONDS = 60.0
_ENGINE_WORDS = ("engine_python", "engine_model", "base_model", "base_revision")


class _ConsoleHandler(logging.Handler):
    """Our own log lines go where those of the processes go."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        for line in self.format(record).splitlines():
            self._console.line("stack", line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 stopped (or restarted) when asked to, 1 something failed, 2 wrong arguments, 3 already running."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "down":
        return _down(options.data)
    if options.command == "restart":
        return _restart(options.data, options.name)
    try:
        engine = _engine(options)
    except ValueError as error:
        parser.error(str(error))
    return _up(options.data, engine=engine, ready_file=options.ready_file, admin_email=options.admin_email)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.embedded", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start everything, and stop it all at Ctrl-C or SIGTERM")
    down = commands.add_parser("down", help="stop the stack that runs in this data folder")
    restart = commands.add_parser("restart", help="end a process of the stack, which starts it again")
    restart.add_argument("name", help="of the process, as in the stack's log")
    for command in (up, down, restart):
        command.add_argument(
            "--data", type=Path, default=Path(".lorekeeper"), help="data folder (default: %(default)s)"
        )
    up.add_argument("--ready-file", type=Path, help="write URLs and pids here, as JSON, once all is ready")
    up.add_argument("--admin-email", default="admin@example.org", help="of the first platform admin")
    engine = up.add_argument_group("a vLLM engine with its node agent (all four, or none)")
    engine.add_argument("--engine-python", type=Path, help="a Python that has vLLM installed")
    engine.add_argument("--engine-model", type=Path, help="a model folder")
    engine.add_argument("--base-model", help="the model's name in the registry, and in the engine")
    engine.add_argument("--base-revision", help="the label of its revision")
    engine.add_argument("--node", default="embedded", help="the node's name (default: %(default)s)")
    return parser


def _engine(options: argparse.Namespace) -> EngineOptions | None:
    given = [word for word in _ENGINE_WORDS if getattr(options, word) is not None]
    if not given:
        return None
    if len(given) < len(_ENGINE_WORDS):
        missing = [f"--{word.replace('_', '-')}" for word in _ENGINE_WORDS if word not in given]
        raise ValueError(f"an engine also needs {', '.join(missing)}")
    return EngineOptions(
        python=options.engine_python.absolute(),
        model=options.engine_model.resolve(),
        base_model=options.base_model,
        base_revision=options.base_revision,
        node=options.node,
    )


def _up(data: Path, *, engine: EngineOptions | None, ready_file: Path | None, admin_email: str) -> int:
    console = Console()
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[_ConsoleHandler(console)])
    stack = Stack(data, engine=engine, console=console, admin_email=admin_email)
    asked_to_stop = _on_signals(stack)
    begun = time.monotonic()
    try:
        stack.start()
    except AlreadyRunning as error:
        console.line("stack", f"{error}; stop it with: python -m deploy.embedded down --data {data}")
        console.close()
        return 3
    if asked_to_stop.is_set():
        stack.request_stop()  # a start forgets what was asked before it
    try:
        return _serve(stack, console, ready_file=ready_file, begun=begun)
    finally:
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
        stack.stop()
        console.line("stack", "stopped")
        console.close()


def _on_signals(stack: Stack) -> threading.Event:
    """Ctrl-C, SIGTERM and a closed terminal ask for a stop, and set the event."""
    asked = threading.Event()

    def ask(_number: int, _frame: object) -> None:
        asked.set()
        stack.request_stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ask)
    return asked


def _serve(stack: Stack, console: Console, *, ready_file: Path | None, begun: float) -> int:
    try:
        stack.wait_ready()
    except EmbeddedError as error:
        console.line("stack", str(error))
        return 0 if stack.failure is None and stack.stopping else 1
    console.line("stack", f"ready after {time.monotonic() - begun:.1f} s; Ctrl-C stops everything")
    for name, url in stack.urls.items():
        console.line("stack", f"{name:<8} {url}")
    console.line("stack", f"the admin's token is in {stack.facts.secrets.bootstrap}")
    if ready_file is not None:
        stack.write_ready_file(ready_file)
    stack.wait_stopped()
    return 0 if stack.failure is None else 1


def _down(data: Path) -> int:
    """Ask the stack of this folder to stop, and wait until it has."""
    holder = holder_of(data / "lock")
    if holder is None:
        sys.stdout.write(f"no stack runs in {data}\n")
        return 0
    with contextlib.suppress(ProcessLookupError):  # it has just stopped by itself
        os.kill(holder, signal.SIGTERM)
    deadline = time.monotonic() + _DOWN_SECONDS
    while holder_of(data / "lock") is not None:
        if time.monotonic() > deadline:
            sys.stderr.write(f"process {holder} did not stop within {_DOWN_SECONDS:.0f} s\n")
            return 1
        time.sleep(0.1)
    sys.stdout.write(f"stopped {data}\n")
    return 0


def _restart(data: Path, name: str) -> int:
    try:
        restart_process(data, name)
    except EmbeddedError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"restarted {name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
