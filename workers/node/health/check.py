"""Checking again and again what /health doesn't know: whether base and loaded versions still read as they should.

Only between loads. While requests are running the base is left alone, since some engines mix up base and adapters in
one batch, and a version is read that is in use, so that no slot changes hands for a check.
"""

import logging
from collections import deque
from threading import Event

from workers.node.agent import Agent
from workers.node.engines.connection import EngineSlowError
from workers.node.errors import (
    EngineAwayError,
    EngineError,
    NodeError,
    OtherBaseError,
    PoisonError,
    ProbeError,
    SickEngineError,
)
from workers.node.jobs.evict import withdraw

_log = logging.getLogger(__name__)

# One failure may be a request that was lost.
FAILURES = 2
# So many readings without an answer in time: an engine with a long queue is slow as well.
SLOW_FAILURES = 5


class Health:
    """`run` in a thread of its own."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._order: deque[str] = deque()
        self._failures = 0
        self._slow = 0
        self._failed: str | None = None

    def run(self, stop: Event, *, interval_s: float) -> None:
        """Check until `stop` is set; a check that fails in an unforeseen way is logged and the next one follows."""
        while not stop.wait(interval_s):
            try:
                self.check()
            except Exception:  # noqa: BLE001  # a bug in a check must not end all later ones
                _log.exception("a health check failed")

    def check(self) -> None:
        """Read the base or a version, or both, and draw the consequences; nothing while the engine loads or is away."""
        agent = self._agent
        with agent.turn.try_take() as free:
            if not free:
                return
            try:
                boot_id = agent.engine.boot().id
                loaded = [each.name for each in agent.engine.list_loaded() if agent.cache.has(each.name)]
                in_use = agent.engine.in_use() if agent.engine.capabilities.reports_in_use else frozenset()
            except EngineError:
                return
            self._check(boot_id, loaded, in_use)

    def _check(self, boot_id: str, loaded: list[str], in_use: frozenset[str] | None) -> None:
        if in_use is not None and not in_use:
            self._read_base(boot_id)
        if self._agent.taint.poison(boot_id) is not None:
            return
        if (name := self._next(loaded, in_use or frozenset())) is not None:
            with self._agent.lanes.try_hold(name) as mine:
                if mine:
                    self._read_version(name, boot_id)

    def _read_base(self, boot_id: str) -> None:
        """An engine that can't read with its base is not well, whatever it says."""
        agent = self._agent
        try:
            agent.prober.check_base(boot_id=boot_id)
        except SickEngineError as error:
            agent.taint.mark(boot_id=boot_id, reason=str(error), poisoned=True)
        except EngineSlowError as error:
            self._slow += 1
            self._doubt(boot_id, error)
        except (EngineError, ProbeError) as error:
            self._failures += 1
            self._doubt(boot_id, error)
        else:
            self._failures = self._slow = 0
            agent.watch.trust()

    def _doubt(self, boot_id: str, error: NodeError) -> None:
        if self._failures >= FAILURES or self._slow >= SLOW_FAILURES:
            self._agent.watch.doubt(boot_id, str(error))

    def _read_version(self, name: str, boot_id: str) -> None:
        agent = self._agent
        again, self._failed = name == self._failed, None
        try:
            agent.prober.probe(name, boot_id=boot_id, reference=agent.references.of(name))
        except (SickEngineError, PoisonError) as error:
            agent.taint.mark(boot_id=boot_id, reason=str(error), poisoned=True)
        except (EngineAwayError, OtherBaseError) as error:
            _log.warning("%s could not be checked: %s", name, error)
        except EngineError as error:
            _log.warning("%s could not be read: %s", name, error)
            if again:
                self._withdraw(name, error)
            else:
                self._failed = name
        except NodeError as error:
            self._withdraw(name, error)

    def _withdraw(self, name: str, error: NodeError) -> None:
        try:
            withdraw(self._agent, name, f"it does not answer as itself any more: {error.code}: {error}")
        except EngineError as problem:
            _log.warning("%s could not be unloaded: %s", name, problem)

    def _next(self, loaded: list[str], in_use: frozenset[str]) -> str | None:
        """The version whose turn it is, of those in use if there are any."""
        there = set(loaded)
        known = set(self._order)
        self._order = deque([name for name in self._order if name in there])
        self._order.extend(name for name in loaded if name not in known)
        wanted = in_use & there or there
        if self._failed in wanted:
            return self._failed
        name = next((each for each in self._order if each in wanted), None)
        if name is not None:
            self._order.remove(name)
            self._order.append(name)
        return name
