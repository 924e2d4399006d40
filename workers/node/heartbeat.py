"""The agent's pulse: look at the engine, tell web, unload what web does not know, delete what is due."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from typing import Any

from workers.node.agent import Agent
from workers.node.commands import check_engine_name
from workers.node.engines.ports import LoadedAdapter
from workers.node.errors import CommandError, EngineError, NodeError, WebError
from workers.node.evict import sweep, unload

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class View:
    """The engine at one moment; `boot_id` of an engine that is away is the last one seen."""

    boot_id: str
    healthy: bool
    loaded: tuple[LoadedAdapter, ...] = ()


class Heartbeat:
    """`run` in a thread of its own; `now` is the wall clock."""

    def __init__(self, agent: Agent, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._agent = agent
        self._now = now
        self._boot_id = ""
        self._web = _Condition("web")
        self._engine = _Condition("the engine")

    def run(self, stop: Event, *, interval_s: float) -> None:
        """Beat until `stop` is set; a beat that fails in an unforeseen way is logged and the next one follows."""
        while not stop.is_set():
            try:
                self.beat()
            except Exception:  # noqa: BLE001  # a bug in one beat must not make the node look lost
                _log.exception("a heartbeat failed")
            stop.wait(interval_s)

    def beat(self) -> None:
        """One look, one report, one sweep."""
        accepted = self._agent.ledger.accepted
        view = self._look()
        try:
            answer = self._agent.web.report(self._body(view))
            self._web.is_fine()
        except WebError as error:
            self._web.is_bad(error)
            answer = {}
        if self._agent.busy.acquire(blocking=False):
            try:
                self._tidy(_unknown(answer, view), accepted)
            finally:
                self._agent.busy.release()

    def _look(self) -> View:
        engine = self._agent.engine
        try:
            boot = engine.boot()
            loaded = engine.list_loaded()
        except EngineError as error:
            self._engine.is_bad(error)
            return View(self._boot_id, healthy=False)
        self._engine.is_fine()
        self._boot_id = boot.id
        return View(boot.id, boot.healthy and self._agent.taint.poison(boot.id) is None, loaded)

    def _body(self, view: View) -> dict[str, Any]:
        return {
            "boot_id": view.boot_id,
            "engine_healthy": view.healthy,
            "loaded": [{"name": adapter.name, "root": adapter.root} for adapter in view.loaded],
            "on_disk": list(self._agent.cache.names()),
            "sent_at": self._now().isoformat(),
        }

    def _tidy(self, unknown: Iterable[str], accepted: int) -> None:
        # A command that came after the look knows more than web's answer to it.
        if self._agent.ledger.accepted == accepted:
            for name in unknown:
                self._unload(name)
        sweep(self._agent)

    def _unload(self, name: str) -> None:
        try:
            check_engine_name(name)
            unload(self._agent, name, grace_s=self._agent.grace_s)
            _log.info("%s unloaded: web does not know it here", name)
        except CommandError:
            # Somebody loaded it by hand: it has no folder of ours to delete.
            self._unload_stranger(name)
        except EngineError as error:
            _log.warning("%s could not be unloaded: %s", name, error)

    def _unload_stranger(self, name: str) -> None:
        try:
            self._agent.engine.unload(name)
            _log.info("%r unloaded: not a name of ours", name)
        except EngineError as error:
            _log.warning("%r could not be unloaded: %s", name, error)


class _Condition:
    """One log line for each change between fine and bad."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._fine: bool | None = None

    def is_fine(self) -> None:
        if self._fine is not True:
            _log.info("%s answers", self._what)
        self._fine = True

    def is_bad(self, error: NodeError) -> None:
        if self._fine is not False:
            _log.warning("%s: %s", self._what, error)
        self._fine = False


def _unknown(answer: Mapping[str, Any], view: View) -> tuple[str, ...]:
    """The names to unload, kept to those that were reported."""
    names = answer.get("unknown")
    listed = {adapter.name for adapter in view.loaded}
    return tuple(name for name in names if name in listed) if isinstance(names, list) else ()
