"""Taking a version out of the engine: wait for its requests, unload, keep its files or delete them later.

Control ended the routing before. A note on disk that an engine may still read the files comes before the unload.
"""

import logging
from collections.abc import Iterable

from workers.node.agent import Agent
from workers.node.commands import EvictCommand, EvictTo, Leaving
from workers.node.errors import FetchError
from workers.node.jobs.job import Job, carry_out
from workers.node.ledger import Act
from workers.node.reports import Outcome

_log = logging.getLogger(__name__)

# A request that takes longer keeps its adapter; the place is made by the engine's own order then.
_MAKE_WAY_S = 0.2

_ACTS: dict[EvictTo, Act] = {"disk": "demote", "absent": "evict"}


def evict(agent: Agent, command: EvictCommand) -> Outcome | None:
    """Carry the command out; it ends `on_disk` or `evicted`. Doing it twice is harmless. See `carry_out`."""
    act = _ACTS[command.to]
    return carry_out(agent, command, act, check=agent.verifier.eviction, still_true=_never, work=_evict)


def _never(agent: Agent, outcome: Outcome) -> bool:  # noqa: ARG001  # whatever was true is made true again
    return False


def _evict(job: Job[EvictCommand]) -> Outcome:
    command, agent = job.command, job.agent
    with job.timed("wait"):
        if not agent.drain.wait(job.name, seconds=command.drain_s, check=job.right.check):
            _log.warning("%s still has requests after %g s: unloaded all the same", job.name, command.drain_s)
    unload(agent, job.name, grace_s=command.grace_s, delete=command.to == "absent")
    if command.to == "absent":
        return job.outcome("evicted")
    if not agent.cache.has(job.name):
        raise FetchError("its files are not on the disk: have them fetched")
    return job.outcome("on_disk")


def unload(agent: Agent, name: str, *, grace_s: float, delete: bool | None) -> None:
    """Unload; the files may be read for the grace, and go then if they are to. The caller holds the name's lane.

    With None for `delete` they go only if an earlier eviction said so.

    Raises:
        EngineError: it is not unloaded for sure; the files stay.

    """
    # Before the unload, for a crash in between; after it, since it may have taken its time.
    seconds = max(grace_s, agent.grace_s)
    agent.tombstones.bury(name, grace_s=seconds, delete=None)
    agent.engine.unload(name)
    agent.tombstones.bury(name, grace_s=seconds, delete=delete)
    agent.cache.touch(name)


def make_way(agent: Agent, leaving: Iterable[Leaving]) -> None:
    """Unload what is to leave anyway, before something else is loaded: an engine that is full drops another by itself.

    Only where an unload frees the place and the engine says what is in use. Whatever is busy, has its own command
    already or was asked for again is left alone.

    Raises:
        EngineError: the engine doesn't answer.

    """
    capabilities = agent.engine.capabilities
    if not (capabilities.true_unload and capabilities.reports_in_use):
        return
    known = {each.engine_name: each for each in leaving}
    for name in [adapter.name for adapter in agent.engine.list_loaded() if adapter.name in known]:
        with agent.lanes.try_hold(name) as is_held:
            if is_held and not _has_its_command(agent, known[name]) and agent.drain.wait(name, seconds=_MAKE_WAY_S):
                unload(agent, name, grace_s=agent.grace_s, delete=None)


def _has_its_command(agent: Agent, leaving: Leaving) -> bool:
    entry = agent.ledger.entry(leaving.engine_name)
    return entry is not None and entry.generation >= leaving.generation


def spare_roots(agent: Agent, roots: Iterable[str]) -> None:
    """Note that the engine may read the files below these paths for the grace, whatever name it has them under."""
    for name in filter(None, map(agent.cache.name_of, roots)):
        agent.tombstones.bury(name, grace_s=agent.grace_s, delete=None)


def withdraw(agent: Agent, name: str, why: str) -> None:
    """Take a loaded version out that can't be trusted any more, and have web told, which has it loaded again.

    The caller holds the name's lane.

    Raises:
        EngineError: the engine doesn't answer.

    """
    _log.error("%s is unloaded: %s", name, why)
    unload(agent, name, grace_s=agent.grace_s, delete=None)
    entry = agent.ledger.entry(name)
    if entry is not None and entry.act == "warm" and entry.outcome is not None:
        agent.conclude(Outcome(name, entry.generation, "failed", why, "transient"))
