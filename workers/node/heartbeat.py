"""The agent's pulse: look at the engine, tell web, heed its answer, unload what shouldn't be there, tidy the disk."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

from workers.node.agent import Agent
from workers.node.commands import check_engine_name
from workers.node.disk.janitor import keep_marks, sweep
from workers.node.engines.ports import EngineTier, LoadedAdapter
from workers.node.errors import CommandError, EngineError, NodeError, WebError
from workers.node.jobs.evict import spare_roots, unload
from workers.node.jobs.lanes import Look
from workers.node.metrics.tally import EngineSight

_log = logging.getLogger(__name__)

Contents = tuple[tuple[LoadedAdapter, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class View:
    """The engine at one moment; `boot_id` of an engine that is away is the last one seen.

    `touched` gains the names for which a command came since.
    """

    boot_id: str
    healthy: bool
    touched: Look
    loaded: tuple[LoadedAdapter, ...] = ()
    tiers: Mapping[str, EngineTier] | None = None
    mismatched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chores:
    """What is to be done after a report: names to unload, and names that are in the engine."""

    view: View
    unload: tuple[str, ...]
    in_engine: frozenset[str] = field(default_factory=frozenset)


class Heartbeat:
    """`run` in a thread of its own; `now` says when a report is sent (default: a clock that never goes back)."""

    def __init__(self, agent: Agent, *, now: Callable[[], datetime] | None = None) -> None:
        self._agent = agent
        self._now = now or _steady_clock()
        self._accepted: Contents | None = None
        self._web = _Condition("web", "answers")
        self._engine = _Condition("the engine", "answers")
        self._limits = _Condition("web's limits", "are heeded", fine=True)

    def run(self, stop: Event, *, interval_s: float) -> None:
        """Beat until `stop` is set; a beat that fails in an unforeseen way is logged and the next one follows.

        Chores may take their time, as an engine may: they don't hold up the next report.
        """
        worker = Thread()
        while not stop.is_set():
            try:
                chores = self.report()
                if not worker.is_alive():
                    worker = Thread(target=self._in_peace, args=(chores,), name="chores", daemon=True)
                    worker.start()
            except Exception:  # noqa: BLE001  # a bug in one beat must not make the node look lost
                _log.exception("a heartbeat failed")
            stop.wait(interval_s)

    def beat(self) -> None:
        """One look, one report, the chores after it."""
        self.do(self.report())

    def report(self) -> Chores:
        """Look at the engine, tell web, and heed its answer, but for what takes time."""
        view = self._look()
        self._agent.tally.saw(_sight(view), boot_id=view.boot_id, mismatched=view.mismatched)
        drops = self._agent.dropped.pending()
        content = (view.loaded, self._agent.cache.names())
        dropped = [{"name": drop.name, "reason": drop.reason} for drop in drops]
        body = {**self._state(view), "dropped": dropped, **self._contents(content)}
        try:
            answer = self._agent.web.report(body)
        except WebError as error:
            self._web.is_bad(error)
            self._accepted = None
            answer = {}
        else:
            self._web.is_fine()
            self._agent.dropped.told(drops)
            self._accepted = None if answer.get("resend") is True else content
        self._heed(answer, view)
        unknown = {*_unknown(answer, view), *view.mismatched}
        return Chores(view, tuple(sorted(unknown)), frozenset(adapter.name for adapter in view.loaded))

    def do(self, chores: Chores) -> None:
        """Unload what has no business in the engine, and tidy the disk."""
        for name in chores.unload:
            self._unload(name, chores.view)
        self._agent.cache.note_use(chores.in_engine)
        sweep(self._agent)
        keep_marks(self._agent, chores.in_engine)

    def _in_peace(self, chores: Chores) -> None:
        try:
            self.do(chores)
        except Exception:  # noqa: BLE001  # the next beat's chores are the same
            _log.exception("the chores of a heartbeat failed")

    def _look(self) -> View:
        agent, touched = self._agent, self._agent.lanes.look()
        try:
            boot = agent.watch.look()
            loaded = agent.engine.list_loaded()
        except EngineError as error:
            self._engine.is_bad(error)
            self._expect_progress(agent.watch.last_id, error)
            return View(agent.watch.last_id, healthy=False, touched=touched)
        self._engine.is_fine()
        self._expect_progress(boot.id)
        healthy = boot.healthy and agent.taint.poison(boot.id) is None
        wrong = tuple(each.name for each in loaded if self._is_from_elsewhere(each))
        return View(boot.id, healthy, touched, loaded, self._tiers(), wrong)

    def _expect_progress(self, boot_id: str, error: EngineError | None = None) -> None:
        if reason := self._agent.standstill.look(boot_id, error):
            self._agent.taint.mark(boot_id=boot_id, reason=f"the engine hangs: {reason}", poisoned=True)

    def _tiers(self) -> Mapping[str, EngineTier] | None:
        """None where they are not told; an engine in the midst of a long step keeps the plugin waiting, and is well."""
        engine = self._agent.engine
        try:
            return engine.tiers() if engine.capabilities.reads_back else None
        except EngineError as error:
            _log.warning("the tiers can't be read back: %s", error)
            return None

    def _is_from_elsewhere(self, adapter: LoadedAdapter) -> bool:
        """Whether it has a name of ours and another path than that name's."""
        try:
            return adapter.root != str(self._agent.cache.folder(adapter.name))
        except CommandError:
            return False

    def _state(self, view: View) -> dict[str, Any]:
        cache = self._agent.cache
        return {
            "boot_id": view.boot_id,
            "engine_healthy": view.healthy,
            "tainted": self._agent.taint.of(view.boot_id) is not None,
            "poisoned": self._agent.taint.poison(view.boot_id) is not None,
            "restartable": self._agent.recycler.available,
            "mismatched": list(view.mismatched),
            "tiers": None if view.tiers is None else dict(view.tiers),
            "disk": {"used_bytes": cache.used_bytes(), "free_bytes": cache.free_bytes()},
            "sent_at": self._now().isoformat(),
        }

    def _contents(self, contents: Contents) -> dict[str, Any]:
        """What engine and disk hold, left out when web has accepted just that before."""
        if contents == self._accepted:
            return {"unchanged": True}
        loaded, on_disk = contents
        return {
            "unchanged": False,
            "loaded": [{"name": adapter.name, "root": adapter.root} for adapter in loaded],
            "on_disk": list(on_disk),
        }

    def _heed(self, answer: Mapping[str, Any], view: View) -> None:
        if self._agent.recycler.ask(answer.get("recycle"), boot_id=view.boot_id):
            _log.warning("web has the engine restarted")
        try:
            self._agent.limits.take(answer.get("limits"))
            self._limits.is_fine()
        except ValueError as error:
            self._limits.is_bad(error)

    def _unload(self, name: str, view: View) -> None:
        with self._agent.lanes.try_hold(name) as mine:
            # A command that came after the look knows more than web's answer to it.
            if not mine or name in view.touched:
                return
            try:
                self._unload_now(name, view)
            except (EngineError, OSError) as error:
                # A disk that is full must not keep the other chores from freeing it.
                _log.warning("%r could not be unloaded: %s", name, error)

    def _unload_now(self, name: str, view: View) -> None:
        spare_roots(self._agent, (adapter.root for adapter in view.loaded if adapter.name == name))
        try:
            check_engine_name(name)
        except CommandError:
            # Somebody loaded it by hand: it has no folder of ours.
            self._agent.engine.unload(name)
        else:
            unload(self._agent, name, grace_s=self._agent.grace_s, delete=None)
        _log.warning("%r unloaded: it has no business in the engine", name)


class _Condition:
    """One log line for each change between fine and bad."""

    def __init__(self, what: str, good: str, *, fine: bool | None = None) -> None:
        self._what = what
        self._good = good
        self._fine = fine

    def is_fine(self) -> None:
        if self._fine is not True:
            _log.info("%s %s", self._what, self._good)
        self._fine = True

    def is_bad(self, error: NodeError | ValueError) -> None:
        if self._fine is not False:
            _log.warning("%s: %s", self._what, error)
        self._fine = False


def _steady_clock() -> Callable[[], datetime]:
    """The time of now, going on evenly: were it put back, web would take the next reports for overtaken ones."""
    begun, since = datetime.now(UTC), time.monotonic()
    return lambda: begun + timedelta(seconds=time.monotonic() - since)


def _sight(view: View) -> EngineSight:
    return EngineSight(view.healthy, tuple(adapter.name for adapter in view.loaded), view.tiers)


def _unknown(answer: Mapping[str, Any], view: View) -> tuple[str, ...]:
    """The names to unload, kept to those that were reported."""
    names = answer.get("unknown")
    listed = {adapter.name for adapter in view.loaded}
    return tuple(name for name in names if isinstance(name, str) and name in listed) if isinstance(names, list) else ()
