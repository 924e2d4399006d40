"""The demo works through the same `lorekeeper` command that people use, run as a process of its own each time."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# What the installed `lorekeeper` script does, without asking whether and where it is installed.
_PROGRAM = (sys.executable, "-c", "from client.cli.main import main; main()")
# Long enough for a push that waits for its validation on a busy machine.
_TIMEOUT_S = 300.0

Answer = dict[str, Any]


class CommandFailedError(Exception):
    """A command ended with another exit code than it should have; the message has the command and its reason."""


@dataclass(frozen=True, slots=True)
class Lorekeeper:
    """The command line of one person: the server's address and that person's token come from the environment."""

    url: str
    token: str = field(repr=False)

    def run(self, *words: str) -> Answer:
        """Run a command and return its JSON document. Raises CommandFailedError unless it exits with 0."""
        code, answer = self._finish(words)
        if code != 0:
            raise CommandFailedError(f"lorekeeper {' '.join(words)}: {reason_of(answer)}")
        return answer

    def refused(self, *words: str) -> Answer:
        """Run a command that must be refused and return its JSON document, which has an `error`.

        Raises CommandFailedError if it succeeds, or if the command was used wrongly (exit code 2).
        """
        code, answer = self._finish(words)
        if code == 0:
            raise CommandFailedError(f"lorekeeper {' '.join(words)} should have been refused")
        if code != 1 or "error" not in answer:
            raise CommandFailedError(f"lorekeeper {' '.join(words)}: {reason_of(answer)}")
        return answer

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a command and return its process; `finish` reads it."""
        environment = {**os.environ, "LOREKEEPER_URL": self.url, "LOREKEEPER_TOKEN": self.token}
        return subprocess.Popen(
            [*_PROGRAM, *words, "--json"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _finish(self, words: Sequence[str]) -> tuple[int, Answer]:
        return finish(self.begin(*words))


def finish(process: subprocess.Popen[str]) -> tuple[int, Answer]:
    """Wait for a command; return its exit code and its JSON document. Output that isn't JSON becomes an `error`."""
    try:
        out, err = process.communicate(timeout=_TIMEOUT_S)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process.returncode, parse(out, err)


def parse(out: str, err: str) -> Answer:
    """Return the document in `out`, or an object with an `error` that tells what was printed instead."""
    try:
        answer = json.loads(out)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    return {"error": {"code": "unreadable", "detail": (err or out).strip()[-500:]}}


def reason_of(answer: Answer) -> str:
    """Return the sentence of an error document."""
    error = answer.get("error")
    if not isinstance(error, dict):
        return json.dumps(answer)[:500]
    return str(error.get("detail") or error.get("message") or error.get("title") or error)
