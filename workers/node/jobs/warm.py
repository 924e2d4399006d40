"""Making a version answer: grant → fetch → verify on disk → load → probe → loaded."""

import logging
from contextlib import ExitStack
from pathlib import Path

from workers.node.agent import Agent
from workers.node.commands import WarmCommand
from workers.node.engines.ports import Boot
from workers.node.errors import (
    EngineAwayError,
    EngineError,
    EngineFullError,
    EngineRefusedError,
    FetchError,
    NodeError,
    PoisonError,
    SickEngineError,
    SupersededError,
)
from workers.node.jobs.evict import make_way, spare_roots
from workers.node.jobs.fetch import bring_to_disk
from workers.node.jobs.job import Job, carry_out
from workers.node.reports import Outcome

_log = logging.getLogger(__name__)

# A look at the engine that is no older stands for one right before the load: the look after it tells a restart.
RECENT_S = 3.0
_WORTH_ANOTHER_TRY = frozenset({"transient", "capacity"})


def warm(agent: Agent, command: WarmCommand) -> Outcome | None:
    """Carry the command out; it ends `loaded`. See `carry_out`."""
    return carry_out(agent, command, "warm", check=agent.verifier.grant, still_true=_is_loaded, work=_warm)


def _is_loaded(agent: Agent, outcome: Outcome) -> bool:
    root = str(agent.cache.folder(outcome.engine_name))
    try:
        here = any((each.name, each.root) == (outcome.engine_name, root) for each in agent.engine.list_loaded())
        return here and agent.watch.look().id == outcome.boot_id
    except EngineError:
        return False


def _warm(job: Job[WarmCommand]) -> Outcome:
    job.agent.tombstones.spare(job.name)
    try:
        bring_to_disk(job)
        job.tell("on_disk")
        _take_turn(job)
    except SupersededError:
        raise
    except (NodeError, OSError) as error:
        _leave_nothing(job, error)
        raise
    job.agent.references.keep(job.name, job.command.reference)
    return job.outcome("loaded")


def _take_turn(job: Job[WarmCommand]) -> None:
    began = job.agent.stopwatch()
    with job.agent.turn.take(is_void=job.right.is_void):
        job.timings_ms["wait"] = round((job.agent.stopwatch() - began) * 1000)
        job.right.check()
        job.agent.verifier.require_current(job.grant)
        job.tell("loading")
        _bring_to_engine(job)


class _RestartedError(EngineAwayError):
    """The engine's life is another than the one that was seen before."""


def _bring_to_engine(job: Job[WarmCommand]) -> None:
    """Load and probe, both in one life of the engine."""
    try:
        _load_and_probe(job, max_age_s=RECENT_S)
    except _RestartedError:
        # Maybe before the load already: what was believed was some seconds old.
        _load_and_probe(job, max_age_s=0)


def _load_and_probe(job: Job[WarmCommand], *, max_age_s: float) -> None:
    agent = job.agent
    with job.timed("wait"):
        boot = _sound_boot(agent, max_age_s=max_age_s)
    job.boot_id = boot.id
    make_way(agent, job.command.leaving)
    try:
        with ExitStack() as stack:
            with job.timed("load"):
                _load(job)
                stack.enter_context(agent.engine.steady())
            # That may have taken long.
            _require_sound(agent, boot)
            with job.timed("probe"):
                difference = agent.prober.probe(job.name, boot_id=boot.id, reference=job.command.reference)
                if agent.watch.look().id != boot.id:
                    raise _RestartedError("the engine restarted while it loaded")
    except NodeError as error:
        _mark(agent, boot, error)
        raise
    _log.info("%s differs from the base by up to %.3f nats", job.name, difference)


def _load(job: Job[WarmCommand]) -> None:
    """Load; whoever holds the name with other files in the engine goes first."""
    engine, folder = job.agent.engine, job.agent.cache.folder(job.name)
    if not job.agent.cache.is_complete(job.name):
        raise FetchError("its files were found corrupted on disk since they were checked: have them fetched again")
    try:
        _load_pinned_or_not(job, folder)
    except EngineRefusedError:
        roots = [each.root for each in engine.list_loaded() if each.name == job.name]
        if not roots or str(folder) in roots:
            raise
        _log.error("%s was in the engine from %s: loaded anew", job.name, ", ".join(roots))
        spare_roots(job.agent, roots)
        engine.unload(job.name)
        _load_pinned_or_not(job, folder)


def _load_pinned_or_not(job: Job[WarmCommand], folder: Path) -> None:
    """Others may hold the pins that the engine allows: rather in it without one than not at all."""
    agent = job.agent
    pinned = job.command.pinned and agent.engine.capabilities.pins
    with agent.standstill.loading():
        try:
            agent.engine.load(name=job.name, path=folder, pinned=pinned)
        except EngineFullError:
            if not pinned:
                raise
            _log.warning("%s is loaded without a pin: no pin is left", job.name)
            agent.engine.load(name=job.name, path=folder)


def _sound_boot(agent: Agent, *, max_age_s: float) -> Boot:
    with agent.engine.steady():
        boot = agent.watch.recent(max_age_s=max_age_s)
        if _fault(agent, boot) is not None:
            boot = agent.watch.look()
    _require_sound(agent, boot)
    return boot


def _require_sound(agent: Agent, boot: Boot) -> None:
    if (fault := _fault(agent, boot)) is not None:
        raise fault


def _fault(agent: Agent, boot: Boot) -> EngineError | None:
    """Why nothing is to be loaded into this life of the engine."""
    if reason := agent.taint.poison(boot.id):
        return SickEngineError(f"the engine must be restarted: {reason}")
    if agent.recycler.is_restarting(boot.id):
        return EngineAwayError("the engine is being restarted")
    return None if boot.healthy else EngineAwayError("the engine is not well")


def _mark(agent: Agent, boot: Boot, error: NodeError) -> None:
    if isinstance(error, SickEngineError) or error.error_class == "permanent":
        poisoned = isinstance(error, (PoisonError, SickEngineError))
        agent.taint.mark(boot_id=boot.id, reason=str(error), poisoned=poisoned)


def _leave_nothing(job: Job[WarmCommand], error: NodeError | OSError) -> None:
    """Unload what may be half there; if the engine is away, the next report sees to it.

    The files stay for another try where one can help, and go where none can.
    """
    agent, name = job.agent, job.name
    again = isinstance(error, OSError) or error.error_class in _WORTH_ANOTHER_TRY
    agent.tombstones.bury(name, grace_s=agent.grace_s, delete=not again)
    try:
        agent.engine.unload(name)
    except EngineError as problem:
        _log.warning("%s could not be unloaded after its failure: %s", name, problem)
