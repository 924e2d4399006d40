"""Taking a version away: unload, a tombstone, and after the grace its files. Control ended its requests before."""

import logging

from workers.node.agent import Agent
from workers.node.commands import EvictCommand
from workers.node.errors import EngineError, NodeError
from workers.node.ledger import Order
from workers.node.reports import Outcome

_log = logging.getLogger(__name__)


def evict(agent: Agent, command: EvictCommand) -> Outcome | None:
    """Carry the command out and report; None when a newer one has been seen. Doing it twice is harmless."""
    name, generation = command.engine_name, command.generation
    with agent.busy:
        if agent.ledger.compare(name, generation=generation, act="evict") is Order.STALE:
            _log.info("%s g%d is stale: left alone", name, generation)
            return None
        try:
            agent.verifier.eviction(command)
            agent.ledger.accept(name, generation=generation, act="evict")
            unload(agent, name, grace_s=command.grace_s)
        except NodeError as error:
            failed = Outcome(name, generation, "failed", f"{error.code}: {error}", error.error_class)
            return agent.conclude(failed)
        return agent.conclude(Outcome(name, generation, "evicted"))


def unload(agent: Agent, name: str, *, grace_s: float) -> None:
    """Unload and bury: the files go later, when no request that was in flight can need them.

    The caller holds `busy`.
    """
    agent.engine.unload(name)
    agent.tombstones.bury(name, grace_s=max(grace_s, agent.grace_s))


def sweep(agent: Agent) -> tuple[str, ...]:
    """Delete the files whose grace is over, but for names that the engine lists now. The caller holds `busy`.

    Returns:
        The names whose files are gone; none when the engine doesn't answer, since it may still be reading.

    """
    due = agent.tombstones.due()
    if not due:
        return ()
    try:
        listed = {adapter.name for adapter in agent.engine.list_loaded()}
    except EngineError:
        return ()
    gone = tuple(name for name in due if name not in listed)
    for name in gone:
        agent.cache.delete(name)
        agent.tombstones.lift(name)
        _log.info("%s: files deleted", name)
    return gone
