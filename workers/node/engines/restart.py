"""Restarting the engine's process by the command that the operator gave: an argument list, never a shell."""

import json
import logging
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from tempfile import TemporaryFile
from threading import Thread
from typing import IO

from workers.node.errors import RestartError

HOOK_TIMEOUT_S = 300.0
MAX_ARGUMENTS = 64
MAX_OUTPUT = 400

_log = logging.getLogger(__name__)


def parse_command(text: str) -> tuple[str, ...]:
    """The argument list in a JSON list of texts; ValueError says what is wrong with it."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError('must be a JSON list of texts, as ["systemctl", "restart", "vllm"]') from error
    if not isinstance(value, list) or len(value) > MAX_ARGUMENTS or not all(map(_is_argument, value)):
        raise ValueError('must be a JSON list of texts, as ["systemctl", "restart", "vllm"]')
    return tuple(value)


def _is_argument(value: object) -> bool:
    return isinstance(value, str) and value != "" and "\0" not in value


class CommandRestarter:
    """Runs the operator's command, which returns when the old process has ended and the new one has been started.

    The command gets the agent's environment without its LOREKEEPER_ settings: they hold the node's token.
    """

    def __init__(self, command: Sequence[str], *, timeout_s: float = HOOK_TIMEOUT_S) -> None:
        """Take an argument list; an empty one means that there is no way to restart the engine."""
        self._command = tuple(command)
        self._timeout_s = timeout_s

    @property
    def available(self) -> bool:
        return bool(self._command)

    def restart(self) -> None:
        """Run the command to its end; `RestartError` with what it said when that isn't success in time."""
        if not self._command:
            raise RestartError("the engine can't be restarted: set LOREKEEPER_NODE_ENGINE_RESTART")
        _log.warning("the engine is being restarted: %s", self._command[0])
        try:
            # A file, not a pipe: an engine that the command leaves running would hold a pipe open.
            with TemporaryFile() as output:
                code = self._run(output)
                words = _last_words(output) if code else ""
        except OSError as error:
            raise RestartError(f"the restart command can't be run: {error}") from error
        if code:
            raise RestartError(f"the restart command ended with {code}: {words}")

    def _run(self, output: IO[bytes]) -> int:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(os.environ),
            start_new_session=True,
        )
        try:
            return process.wait(self._timeout_s)
        except subprocess.TimeoutExpired as error:
            text = f"the restart command was not done after {self._timeout_s:g} s"
            raise RestartError(f"{text}{_end(process)}") from error


def _end(process: subprocess.Popen[bytes]) -> str:
    """End it and what it started; what to add to the error when that can't be done, as with a command of sudo's."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError as error:
        Thread(target=process.wait, name="reaper", daemon=True).start()
        return f", and can't be ended: {error}"
    process.wait()
    return ""


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in inherited.items() if not name.startswith("LOREKEEPER_")}


def _last_words(output: IO[bytes]) -> str:
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - 4 * MAX_OUTPUT))
    text = output.read().decode(errors="replace")
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[-MAX_OUTPUT:] or "no output"
