"""The parts of a node agent, put together once at its start."""

import fcntl
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from registry.signing.errors import SigningError
from registry.signing.trust_file import TrustFile
from workers.node.commands import address_of
from workers.node.courier import Courier, Outbox
from workers.node.disk.cache import DiskCache
from workers.node.disk.dropped import DropBook
from workers.node.disk.fetch import Fetcher
from workers.node.disk.tombstones import Tombstones
from workers.node.engines import make_engine, make_restarter
from workers.node.engines.ports import Engine
from workers.node.errors import CommandError, SettingError
from workers.node.health.recycle import Recycler
from workers.node.health.references import References
from workers.node.health.standstill import Patience, Standstill
from workers.node.health.watch import EngineWatch
from workers.node.jobs.drain import Drain
from workers.node.jobs.lanes import Lanes
from workers.node.jobs.turn import Turn
from workers.node.ledger import Ledger
from workers.node.limits import Limits, LimitsBook
from workers.node.metrics.tally import Tally
from workers.node.probe import Prober
from workers.node.reports import Outcome, Web, WebClient
from workers.node.settings import Settings
from workers.node.taint import TaintMark
from workers.node.verify import Verifier

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Agent:
    """Everything that a command, a heartbeat or a check works with; threads share it.

    `grace_s` is the least time between unload and deletion; `stopwatch` counts seconds.
    """

    cache: DiskCache
    ledger: Ledger
    tombstones: Tombstones
    references: References
    taint: TaintMark
    engine: Engine
    watch: EngineWatch
    standstill: Standstill
    recycler: Recycler
    verifier: Verifier
    fetcher: Fetcher
    prober: Prober
    courier: Courier
    web: Web
    limits: LimitsBook
    turn: Turn
    drain: Drain
    grace_s: float
    lanes: Lanes = field(default_factory=Lanes)
    dropped: DropBook = field(default_factory=DropBook)
    tally: Tally = field(default_factory=Tally)
    stopwatch: Callable[[], float] = time.monotonic

    def report(self, outcome: Outcome) -> None:
        """Have web told; delivered later and in order, whatever happens to web or to this process."""
        why = f": {outcome.message}" if outcome.message else ""
        _log.info("%s g%d %s%s", outcome.engine_name, outcome.generation, outcome.outcome, why)
        self.courier.submit(outcome)

    def conclude(self, outcome: Outcome) -> Outcome:
        """Report how a command ended, then note it: a crash between makes the command run again, and report again."""
        self.report(outcome)
        try:
            self.ledger.finish(outcome)
        except OSError:
            # Delivered once more, the command is carried out once more, which changes nothing.
            _log.exception("%s g%d: its end can't be noted", outcome.engine_name, outcome.generation)
        return outcome

    def refuse(self, data: object, error: CommandError) -> None:
        """Report a command that is malformed, if it can be told whose it is and it is news.

        Nobody has signed it: whoever can write to the queue could else make a version that is loaded look failed.
        """
        _log.error("refused a command: %s", error)
        address = address_of(data)
        if address is None:
            return
        name, generation = address
        entry = self.ledger.entry(name)
        if entry is None or generation > entry.generation:
            self.courier.submit(Outcome(name, generation, "failed", str(error), error.error_class, code=error.code))


def build_agent(settings: Settings) -> Agent:
    """Open the cache folder, clear what a crash left there, and connect the parts.

    Raises:
        SettingError: the trusted keys can't be read, or the engine can't be driven with these settings.

    """
    root = settings.cache
    cache = DiskCache(root)
    cache.prepare()
    engine = make_engine(settings)
    web = WebClient(settings.web_url, settings.token)
    limits = LimitsBook(Limits(disk_bytes=settings.disk_bytes))
    ledger = Ledger(root / "ledger", may_forget=engine.capabilities.lists_adapters)
    ledger.prune(frozenset(cache.names()), now=time.time())
    tombstones = Tombstones(root / "tombstones", clock=time.time)
    tombstones.make_whole(cache.names(), grace_s=settings.evict_grace_s)
    turn = make_turn(engine, queue=settings.load_queue)
    stopped = settings.standstill_s
    patience = Patience(
        stopped=stopped, silent=max(stopped, settings.engine_start_s), loading=max(stopped, settings.load_s)
    )
    return Agent(
        cache=cache,
        ledger=ledger,
        tombstones=tombstones,
        references=References(root / "references"),
        taint=TaintMark(root / "taint.json"),
        engine=engine,
        watch=EngineWatch(engine),
        standstill=Standstill(engine, patience, is_asked=turn.is_taken),
        recycler=Recycler(make_restarter(settings, engine), root / "recycled.json"),
        verifier=Verifier(_trusted_keys(settings.trusted_keys), node=settings.node),
        fetcher=Fetcher(limits=lambda: limits.now),
        prober=Prober(engine, base_model=settings.base_model, tolerance=settings.probe_tolerance),
        courier=Courier(Outbox(root / "outbox"), web),
        web=web,
        limits=limits,
        turn=turn,
        drain=Drain(engine),
        grace_s=settings.evict_grace_s,
    )


def make_turn(engine: Engine, *, queue: int) -> Turn:
    """One load at a time; where a load is a restart, those that come together share one, so all may go ahead."""
    return Turn(width=1 if engine.capabilities.runtime_load else queue + 1, queue=queue)


def lock_cache(root: Path) -> IO[bytes]:
    """Take the cache folder for this process; keep the answer open as long as it is used.

    Raises:
        SettingError: another agent works there, or this user can't.

    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = (root / "lock").open("ab")
        _lock(handle)
    except BlockingIOError as error:
        raise SettingError("LOREKEEPER_NODE_CACHE is in use by another agent") from error
    except OSError as error:
        raise SettingError(f"LOREKEEPER_NODE_CACHE can't be used: {error}") from error
    return handle


def _lock(handle: IO[bytes]) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        raise


def _trusted_keys(path: Path) -> TrustFile:
    try:
        return TrustFile(path)
    except SigningError as error:
        raise SettingError(f"LOREKEEPER_TRUSTED_KEYS can't be read: {error}") from error
