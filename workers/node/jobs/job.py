"""One command being carried out: its place in the order, its grant, what is told of it, and how it ends."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from registry.signing.grants import Grant
from workers.node.agent import Agent
from workers.node.commands import EvictCommand, FetchCommand
from workers.node.durable import FULL
from workers.node.errors import DiskFaultError, DiskFullError, NodeError, SupersededError, UnforeseenError
from workers.node.jobs.lanes import Pass
from workers.node.ledger import Act, Order
from workers.node.reports import Outcome, OutcomeKind

_log = logging.getLogger(__name__)

C = TypeVar("C", bound=FetchCommand | EvictCommand)


@dataclass(slots=True)
class Job(Generic[C]):
    """What a command works with while it holds its lane; times are milliseconds, sizes bytes.

    `boot_id` is the engine's life that it works on, once it does.
    """

    agent: Agent
    command: C
    grant: Grant
    right: Pass
    timings_ms: dict[str, int] = field(default_factory=dict)
    fetched_bytes: int = 0
    boot_id: str = ""

    @property
    def name(self) -> str:
        return self.command.engine_name

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        begin = self.agent.stopwatch()
        try:
            yield
        finally:
            spent = round((self.agent.stopwatch() - begin) * 1000)
            self.timings_ms[step] = self.timings_ms.get(step, 0) + spent

    def tell(self, step: OutcomeKind) -> None:
        """Have web told how far it has come."""
        self.agent.courier.tell(self.outcome(step))

    def outcome(self, kind: OutcomeKind) -> Outcome:
        return Outcome(
            self.name,
            self.command.generation,
            kind,
            timings_ms=dict(self.timings_ms),
            boot_id=self.boot_id,
            fetched_bytes=self.fetched_bytes,
        )

    def failed(self, error: NodeError) -> Outcome:
        """The end by an error, with its class."""
        return Outcome(
            self.name,
            self.command.generation,
            "failed",
            f"{error.code}: {error}",
            error.error_class,
            timings_ms=dict(self.timings_ms),
            boot_id=self.boot_id,
            fetched_bytes=self.fetched_bytes,
            code=error.code,
        )


def carry_out(
    agent: Agent,
    command: C,
    act: Act,
    *,
    check: Callable[[C], Grant],
    still_true: Callable[[Agent, Outcome], bool],
    work: Callable[[Job[C]], Outcome],
) -> Outcome | None:
    """Bring the command to its end and have web told; None when a newer one has been seen, or it is in work already.

    A command that ended already is told again if that still holds, and else done again. The grant is checked before
    the command may make older ones give way: whoever can write to the queue could else stop them.
    """
    name, generation = command.engine_name, command.generation
    _log.debug("%s g%d: %s", name, generation, act)
    if agent.ledger.compare(name, generation=generation, act=act) is Order.STALE:
        return None
    grant, refusal = _checked(command, check)
    with agent.lanes.enter(name, generation=generation, act=act, outranks=grant is not None) as right:
        order = agent.ledger.compare(name, generation=generation, act=act)
        if right is None or order is Order.STALE:
            return None
        known = _known(agent, command, still_true) if order is Order.AGAIN else None
        if known is not None:
            agent.tally.again(act, known)
            agent.report(known)
            return known
        if grant is None:
            return _concluded(agent, act, None, _refused(command, refusal))
        try:
            outcome = _worked(Job(agent, command, grant, right), act, work)
        except SupersededError as error:
            _log.info("%s g%d is given up: %s", name, generation, error)
            return None
        return _concluded(agent, act, grant, outcome)


def _concluded(agent: Agent, act: Act, grant: Grant | None, outcome: Outcome) -> Outcome:
    agent.tally.ended(act, grant, outcome)
    return agent.conclude(outcome)


def _checked(command: C, check: Callable[[C], Grant]) -> tuple[Grant | None, NodeError | None]:
    try:
        return check(command), None
    except NodeError as error:
        return None, error


def _refused(command: FetchCommand | EvictCommand, error: NodeError | None) -> Outcome:
    cause = error or NodeError("it has no grant")
    message = f"{cause.code}: {cause}"
    return Outcome(command.engine_name, command.generation, "failed", message, cause.error_class, code=cause.code)


def _worked(job: Job[C], act: Act, work: Callable[[Job[C]], Outcome]) -> Outcome:
    try:
        job.agent.ledger.accept(job.name, generation=job.command.generation, act=act)
        return work(job)
    except SupersededError:
        raise
    except NodeError as error:
        return job.failed(error)
    except OSError as error:
        return job.failed(disk_error(error))
    except Exception as error:  # noqa: BLE001  # a bug must not leave control without an answer
        _log.exception("%s g%d: an unforeseen error", job.name, job.command.generation)
        return job.failed(UnforeseenError(type(error).__name__))


def _known(
    agent: Agent, command: FetchCommand | EvictCommand, still_true: Callable[[Agent, Outcome], bool]
) -> Outcome | None:
    """How it ended before, if that is worth nothing but telling it again."""
    entry = agent.ledger.entry(command.engine_name)
    outcome = entry.outcome if entry else None
    if outcome is None or outcome.error_class in {"transient", "capacity"}:
        return None
    return outcome if outcome.outcome == "failed" or still_true(agent, outcome) else None


def disk_error(error: OSError) -> NodeError:
    """An error of the disk as one of the node."""
    if error.errno in FULL:
        return DiskFullError(f"the disk is full: {error}")
    return DiskFaultError(f"{type(error).__name__}: {error}")
