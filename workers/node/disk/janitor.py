"""Deleting files: only of versions that no command works on and that the engine can't read."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from workers.node.agent import Agent
from workers.node.disk.marks import Drop, excess, in_the_way, outlived
from workers.node.errors import EngineError

_log = logging.getLogger(__name__)


def sweep(agent: Agent) -> tuple[str, ...]:
    """Delete the files of evicted versions whose grace is over.

    Returns:
        The names whose files are gone; none when the engine doesn't answer, since it may still be reading.

    """
    agent.tombstones.forget_spared()
    with _idle(agent, agent.tombstones.due()) as names:
        # A command that came between may have spared one.
        gone = tuple(name for name in names if name in agent.tombstones.due())
        for name in gone:
            _delete(agent, name)
            _log.info("%s: files deleted", name)
    return gone


def keep_marks(agent: Agent, in_engine: frozenset[str]) -> tuple[Drop, ...]:
    """Drop what outlived its time, and what is used least while the disk is beyond its high mark.

    `in_engine` was seen a moment ago: those are not even looked at.
    """
    limits, cache = agent.limits.now, agent.cache
    done: tuple[Drop, ...] = ()
    if limits.disk_ttl_s is not None:
        idle = (each for each in cache.kept() if each.name not in in_engine)
        done = _drop(agent, outlived(idle, ttl_s=limits.disk_ttl_s, now=agent.tombstones.now()))
    to_free = excess(
        cache.used_bytes(), budget=limits.disk_bytes, high_water=limits.high_water, low_water=limits.low_water
    )
    return (*done, *_drop_in_the_way(agent, to_free))


def make_room(agent: Agent, need: int) -> tuple[Drop, ...]:
    """Drop what is used least until `need` bytes more fit, as far as that goes."""
    budget = agent.limits.now.disk_bytes
    lacking = [need - agent.cache.free_bytes()]
    if budget is not None:
        lacking.append(agent.cache.used_bytes() + need - budget)
    return _drop_in_the_way(agent, max(lacking))


def discard(agent: Agent, name: str) -> bool:
    """Delete one whose files are damaged, if nothing can be reading them; whether it is gone.

    That is not told as a drop: web misses it in the next report, and has it fetched again if it is wanted.
    """
    with _idle(agent, (name,)) as names:
        gone = bool(names) and not agent.tombstones.may_be_read(name)
        if gone:
            _delete(agent, name)
    return gone


def _drop_in_the_way(agent: Agent, to_free: int) -> tuple[Drop, ...]:
    if to_free <= 0:
        return ()
    in_engine = _in_engine(agent)
    if in_engine is None:
        return ()
    return _drop(
        agent,
        in_the_way(
            agent.cache.kept(),
            to_free=to_free,
            may_go=lambda name: _may_go(agent, name, in_engine),
            first=agent.limits.now.expendable,
        ),
    )


def _drop(agent: Agent, drops: Iterable[Drop]) -> tuple[Drop, ...]:
    wanted = {drop.name: drop for drop in drops}
    with _idle(agent, wanted) as names:
        done = tuple(wanted[name] for name in names if not agent.tombstones.may_be_read(name))
        for drop in done:
            _delete(agent, drop.name)
            agent.dropped.add(drop)
            agent.tally.dropped(drop.reason)
            _log.warning("%s: files dropped: %s", drop.name, drop.reason)
    return done


def _delete(agent: Agent, name: str) -> None:
    # Last what has the rest done again, should this process end in between.
    agent.references.forget(name)
    agent.cache.delete(name)
    agent.tombstones.lift(name)


@contextmanager
def _idle(agent: Agent, names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Those of the names that no command works on and that the engine can't read; none starts while in the block.

    The engine is asked when the lanes are held: a load that ended before shows in its list, and none can begin.
    """
    with ExitStack() as held:
        mine = [name for name in names if held.enter_context(agent.lanes.try_hold(name))]
        in_engine = _in_engine(agent) if mine else None
        yield () if in_engine is None else tuple(name for name in mine if not _is_readable(agent, name, in_engine))


def _in_engine(agent: Agent) -> frozenset[str] | None:
    """The names that the engine has, and those of ours whose files it has by others; None when it doesn't answer."""
    try:
        loaded = agent.engine.list_loaded()
    except EngineError:
        return None
    read = (agent.cache.name_of(adapter.root) for adapter in loaded)
    return frozenset(adapter.name for adapter in loaded) | {name for name in read if name is not None}


def _may_go(agent: Agent, name: str, in_engine: frozenset[str]) -> bool:
    if name in agent.limits.now.guaranteed:
        return False
    return not agent.tombstones.may_be_read(name) and not _is_readable(agent, name, in_engine)


def _is_readable(agent: Agent, name: str, in_engine: frozenset[str]) -> bool:
    """Whether the engine has the name; one whose own list can't be had is believed to have what it was last given."""
    if name in in_engine:
        return True
    entry = None if agent.engine.capabilities.lists_adapters else agent.ledger.entry(name)
    if entry is None or entry.act != "warm":
        return False
    outcome = entry.outcome
    return outcome is None or (outcome.outcome == "loaded" and outcome.boot_id == agent.watch.last_id)
