"""Reading the files on disk again, slowly: bits rot, and an engine may read a file long after it was checked."""

import logging
from collections.abc import Callable

from workers.node.agent import Agent
from workers.node.disk.janitor import discard
from workers.node.errors import EngineError
from workers.node.jobs.evict import withdraw

_log = logging.getLogger(__name__)

# Between two rounds; and no longer at once, since the rate may change.
PAUSE_S = 60.0


class Scrub:
    """`run` in a thread of its own; `wait` pauses for so many seconds and says whether to end.

    `pause_s` lies between two rounds.
    """

    def __init__(self, agent: Agent, *, wait: Callable[[float], bool], pause_s: float = PAUSE_S) -> None:
        self._agent = agent
        self._wait = wait
        self._pause_s = pause_s
        self._is_left = False

    def run(self) -> None:
        """Go through the disk again and again; a round that fails in an unforeseen way is logged, the next follows."""
        while not self._wait(self._pause_s):
            try:
                self.round()
            except Exception:  # noqa: BLE001  # a bug in a round must not end all later ones
                _log.exception("a scrub failed")

    def round(self) -> int:
        """Read every blob once; how many were corrupted. What used one is taken from where it could be read."""
        found = 0
        self._take_out_all()
        for sha256 in sorted(self._agent.cache.blobs()):
            if self._rate() <= 0 or self._wait(0):
                break
            if self._agent.cache.drop_if_corrupted(sha256, after=self._rest):
                found += 1
                self._is_left = True
            if self._is_left:
                self._take_out_all()
        return found

    def _rate(self) -> float:
        return self._agent.limits.now.scrub_bytes_per_s

    def _rest(self, size: int) -> None:
        """Wait as long as reading so many bytes may take; by the rate that holds at the time, which may change."""
        left = float(size)
        while left > 0 and (rate := self._rate()) > 0:
            seconds = min(left / rate, PAUSE_S)
            if self._wait(seconds):
                return
            left -= seconds * rate

    def _take_out_all(self) -> None:
        """What is in work, or the engine does not let go, is tried again after the next blob."""
        for name in self._agent.cache.incomplete():
            self._take_out(name)
        self._is_left = bool(self._agent.cache.incomplete())

    def _take_out(self, name: str) -> None:
        """From the engine, if it is there, and from the disk, if nothing can be reading it: control brings it back."""
        agent = self._agent
        try:
            if any(each.name == name for each in agent.engine.list_loaded()):
                with agent.lanes.try_hold(name) as mine:
                    if mine:
                        withdraw(agent, name, "its files were corrupted on disk")
        except EngineError as error:
            _log.warning("%s could not be unloaded: %s", name, error)
        if discard(agent, name):
            _log.warning("%s: corrupted files deleted", name)
