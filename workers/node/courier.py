"""Outcomes on their way to web: in order, and those that end a command on disk until they are delivered."""

import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import Any

from workers.node.durable import open_folder, read_json, remove, write_json
from workers.node.errors import WebError, WebFailedError, WebRefusedError
from workers.node.reports import Outcome, Web

_log = logging.getLogger(__name__)

MAX_PAUSE_S = 10.0
FIRST_PAUSE_S = 0.2
# A step waits so long for the end of its command: most ends come sooner, and say all that matters.
STEP_PAUSE_S = 0.3
MAX_STEPS = 1000


@dataclass(slots=True, eq=False)
class Letter:
    """One outcome that waits; without a path it is only a step, and need not outlive the process."""

    body: dict[str, Any]
    path: Path | None
    due_at: float = 0.0
    is_kept: bool = False
    is_done: bool = False

    @property
    def is_good_end(self) -> bool:
        return self.path is not None and self.body["outcome"] != "failed"


class Outbox:
    """What waits, in the order in which it happened; on disk as `<number>.json`, removed when delivered."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = Lock()
        open_folder(folder)
        paths = sorted(path for path in folder.glob("*.json") if path.stem.isdecimal())
        self._last = max((int(path.stem) for path in paths), default=0)
        found = ((path, _readable(path)) for path in paths)
        letters = (Letter(body, path, is_kept=True) for path, body in found if body is not None)
        self._letters = {id(letter): letter for letter in letters}

    def append(self, outcome: Outcome, *, is_end: bool) -> Letter:
        """Put it behind all others."""
        with self._lock:
            self._last += is_end
            path = self._folder / f"{self._last:020d}.json" if is_end else None
            letter = Letter(outcome.to_json(), path, due_at=0.0 if is_end else self._clock() + STEP_PAUSE_S)
            self._letters[id(letter)] = letter
            return letter

    def keep(self, letter: Letter) -> None:
        """Write it to the disk, unless it is delivered already."""
        if letter.path is None or letter.is_done:
            return
        write_json(letter.path, letter.body)
        with self._lock:
            letter.is_kept = True
            is_late = letter.is_done
        if is_late:
            remove(letter.path)

    def pending(self) -> tuple[Letter, ...]:
        """Everything that is due, oldest first, without the steps of commands whose good end waits too.

        What led to a bad end goes with it: it matters in which step that was.
        """
        with self._lock:
            letters = self._letters.values()
            ended = {_command_of(letter) for letter in letters if letter.is_good_end}
            kept = _few_steps([each for each in letters if each.path or _command_of(each) not in ended])
            self._letters = {id(letter): letter for letter in kept}
            now, failed = self._clock(), {_command_of(letter) for letter in kept if letter.path}
            return tuple(each for each in kept if each.due_at <= now or _command_of(each) in failed)

    def pause_s(self) -> float:
        """How long until something more is due; at most MAX_PAUSE_S."""
        with self._lock:
            due_at = min((letter.due_at for letter in self._letters.values()), default=math.inf)
        return min(max(due_at - self._clock(), 0.0), MAX_PAUSE_S)

    def done(self, letter: Letter) -> None:
        """Forget a delivered one."""
        with self._lock:
            letter.is_done = True
            self._letters.pop(id(letter), None)
            path = letter.path if letter.is_kept else None
        if path is not None:
            remove(path)


class Courier:
    """Delivers the outbox: in order, until web takes each; a thread runs `run`, others `submit` and `tell`."""

    def __init__(self, outbox: Outbox, web: Web) -> None:
        self._outbox = outbox
        self._web = web
        self._wake = Event()
        self._reachable = True

    def submit(self, outcome: Outcome) -> None:
        """Have the end of a command sent at once, and kept on disk until web has it."""
        letter = self._outbox.append(outcome, is_end=True)
        self._wake.set()
        try:
            self._outbox.keep(letter)
        except OSError:
            # It is sent as long as this process lives; after that control sends the command again.
            _log.exception("an outcome can't be kept on disk")

    def tell(self, outcome: Outcome) -> None:
        """Have a step of a command sent soon, unless its good end overtakes it."""
        self._outbox.append(outcome, is_end=False)
        self._wake.set()

    def run(self, stop: Event) -> None:
        """Deliver until `stop` is set, then once more what is left; web being down only makes the pauses longer."""
        pause = FIRST_PAUSE_S
        while not stop.is_set():
            self._wake.clear()
            if self._try():
                pause = FIRST_PAUSE_S
                self._wake.wait(self._outbox.pause_s())
            else:
                stop.wait(pause)
                pause = min(pause * 2, MAX_PAUSE_S)
        self._try()

    def stop(self, stop: Event) -> None:
        """Set `stop` and wake the thread."""
        stop.set()
        self._wake.set()

    def deliver(self) -> bool:
        """Send what waits; False when web is away, or fails at one, and something is left.

        One that web fails at holds up only what comes after it for its name: web may do so for ever.
        """
        while letters := self._outbox.pending():
            stuck: set[str] = set()
            for letter in letters:
                name = letter.body["engine_name"]
                if name in stuck:
                    continue
                try:
                    self._hand_over(letter)
                except WebFailedError as error:
                    _log.warning("what is told of %s waits: %s", name, error)
                    stuck.add(name)
                except WebError as error:
                    self._note(reachable=False, why=str(error))
                    return False
            if stuck:
                return False
        return True

    def _hand_over(self, letter: Letter) -> None:
        try:
            self._web.outcome(letter.body)
        except WebRefusedError:
            _log.exception("web refused an outcome for ever: %s", json.dumps(letter.body))
        self._outbox.done(letter)
        self._note(reachable=True, why="")

    def _try(self) -> bool:
        """As `deliver`; neither a disk that fails for a while nor a bug must end the thread."""
        try:
            return self.deliver()
        except Exception:  # noqa: BLE001  # nobody else would tell web how commands ended
            _log.exception("outcomes can't be delivered")
            return False

    def _note(self, *, reachable: bool, why: str) -> None:
        if reachable != self._reachable:
            _log.warning("outcomes %s", "are delivered again" if reachable else f"wait on disk: {why}")
        self._reachable = reachable


def _few_steps(letters: list[Letter]) -> list[Letter]:
    """Without the oldest steps, where web was away for so long that there are too many."""
    steps = [id(letter) for letter in letters if letter.path is None]
    old = set(steps[:-MAX_STEPS])
    return [letter for letter in letters if id(letter) not in old]


def _command_of(letter: Letter) -> tuple[object, object]:
    return letter.body["engine_name"], letter.body["generation"]


def _readable(path: Path) -> dict[str, Any] | None:
    try:
        body = read_json(path)
        return None if body is None else Outcome.from_json(body).to_json()
    except (ValueError, KeyError, TypeError):
        _log.exception("dropped a damaged outcome")
        remove(path)
        return None
