"""Making a version answer: grant → fetch → verify on disk → load → probe → loaded."""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from registry.naming import ATTESTATION_FILE, BUNDLE_FILE
from registry.signing.grants import Grant
from workers.node.agent import Agent
from workers.node.commands import WarmCommand
from workers.node.engines.ports import Boot
from workers.node.errors import (
    DiskFullError,
    EngineAwayError,
    EngineError,
    NodeError,
    PoisonError,
    SickEngineError,
)
from workers.node.ledger import Order
from workers.node.reports import Outcome, OutcomeKind
from workers.node.verify import DamagedError

_log = logging.getLogger(__name__)


def warm(agent: Agent, command: WarmCommand) -> Outcome | None:
    """Carry the command out and report each step; None when a newer one has been seen.

    A command that ended already is reported again if that still holds, and else done again.
    """
    with agent.busy:
        order = agent.ledger.compare(command.engine_name, generation=command.generation, act="warm")
        if order is Order.STALE:
            _log.info("%s g%d is stale: left alone", command.engine_name, command.generation)
            return None
        known = _still_true(agent, command) if order is Order.AGAIN else None
        if known is not None:
            agent.report(known)
            return known
        return agent.conclude(_Warming(agent, command).run())


def _still_true(agent: Agent, command: WarmCommand) -> Outcome | None:
    entry = agent.ledger.entry(command.engine_name)
    outcome = entry.outcome if entry else None
    if outcome is None or outcome.error_class in {"transient", "capacity"}:
        return None
    return outcome if outcome.outcome != "loaded" or _is_loaded(agent, outcome) else None


def _is_loaded(agent: Agent, outcome: Outcome) -> bool:
    root = str(agent.cache.folder(outcome.engine_name))
    try:
        here = any((each.name, each.root) == (outcome.engine_name, root) for each in agent.engine.list_loaded())
        return here and agent.engine.boot().id == outcome.boot_id
    except EngineError:
        return False


@dataclass(slots=True)
class _Warming:
    agent: Agent
    command: WarmCommand
    timings_ms: dict[str, int] = field(default_factory=dict)

    def run(self) -> Outcome:
        """The command's end; every error becomes an outcome with its class."""
        try:
            grant = self.agent.verifier.grant(self.command)
            self.agent.ledger.accept(self.command.engine_name, generation=self.command.generation, act="warm")
            boot_id = self._warm(grant)
        except NodeError as error:
            return self._failed(error)
        except OSError as error:
            return self._failed(_disk_error(error))
        return self._outcome("loaded", boot_id=boot_id)

    def _warm(self, grant: Grant) -> str:
        name = self.command.engine_name
        self.agent.tombstones.lift(name)
        try:
            self._bring_to_disk(grant)
            self._tell("on_disk")
            self._tell("loading")
            return self._bring_to_engine()
        except (NodeError, OSError):
            self._leave_nothing(name)
            raise

    def _bring_to_disk(self, grant: Grant) -> None:
        self._fetch()
        try:
            self._place_and_verify(grant)
        except DamagedError:
            if not self.agent.cache.drop_corrupted(self.command.files):
                raise
            self._fetch()
            self._place_and_verify(grant)

    def _fetch(self) -> None:
        cache = self.agent.cache
        missing = cache.missing(self.command.files)
        if not missing:
            return
        self._tell("fetching")
        cache.ensure_room(missing)
        with self._timed("fetch"):
            for file in missing:
                partial = cache.partial_path(file.sha256)
                try:
                    self.agent.fetcher.fetch(file, partial)
                    cache.adopt(partial, file.sha256)
                finally:
                    partial.unlink(missing_ok=True)

    def _place_and_verify(self, grant: Grant) -> None:
        texts = {BUNDLE_FILE: self.command.bundle, ATTESTATION_FILE: self.command.attestation}
        folder = self.agent.cache.place(self.command.engine_name, self.command.files, texts)
        with self._timed("verify"):
            self.agent.verifier.folder(folder, self.command, grant)

    def _bring_to_engine(self) -> str:
        """Load and probe; the boot id of the engine's life in which both happened."""
        name, engine = self.command.engine_name, self.agent.engine
        boot = self._sound_boot()
        try:
            with self._timed("load"):
                engine.load(name=name, path=self.agent.cache.folder(name))
            with self._timed("probe"):
                difference = self.agent.prober.probe(name, boot_id=boot.id, reference=self.command.reference)
            if engine.boot().id != boot.id:
                raise EngineAwayError("the engine restarted while it loaded")
        except NodeError as error:
            self._mark(boot, error)
            raise
        _log.info("%s differs from the base by up to %.3f nats", name, difference)
        return boot.id

    def _sound_boot(self) -> Boot:
        boot = self.agent.engine.boot()
        if not boot.healthy:
            raise EngineAwayError("the engine says it is not well")
        if reason := self.agent.taint.poison(boot.id):
            raise SickEngineError(f"the engine must be restarted: {reason}")
        return boot

    def _mark(self, boot: Boot, error: NodeError) -> None:
        if isinstance(error, SickEngineError) or error.error_class == "permanent":
            poisoned = isinstance(error, (PoisonError, SickEngineError))
            self.agent.taint.mark(boot_id=boot.id, reason=str(error), poisoned=poisoned)

    def _leave_nothing(self, name: str) -> None:
        """Unload what may be half there and let the files go; if the engine is away, the next report sees to it."""
        self.agent.tombstones.bury(name, grace_s=self.agent.grace_s)
        try:
            self.agent.engine.unload(name)
        except EngineError as error:
            _log.warning("%s could not be unloaded after its failure: %s", name, error)

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        begin = self.agent.stopwatch()
        try:
            yield
        finally:
            spent = round((self.agent.stopwatch() - begin) * 1000)
            self.timings_ms[step] = self.timings_ms.get(step, 0) + spent

    def _tell(self, outcome: OutcomeKind) -> None:
        self.agent.report(self._outcome(outcome))

    def _failed(self, error: NodeError) -> Outcome:
        return Outcome(
            self.command.engine_name,
            self.command.generation,
            "failed",
            f"{error.code}: {error}",
            error.error_class,
            timings_ms=self.timings_ms,
        )

    def _outcome(self, outcome: OutcomeKind, *, boot_id: str = "") -> Outcome:
        name, generation = self.command.engine_name, self.command.generation
        return Outcome(name, generation, outcome, timings_ms=dict(self.timings_ms), boot_id=boot_id)


def _disk_error(error: OSError) -> NodeError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFullError(f"the disk is full: {error}")
    return _LocalError(f"{type(error).__name__}: {error}")


class _LocalError(NodeError):
    """Something on this machine failed that a later attempt may find mended."""

    code = "node_io"
    error_class = "transient"
    retryable = True
