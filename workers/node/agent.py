"""The parts of a node agent, put together once at its start."""

import fcntl
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO

from registry.signing.errors import SigningError
from registry.signing.trust_file import TrustFile
from workers.node.commands import address_of
from workers.node.disk_cache import DiskCache
from workers.node.engines.ports import Engine
from workers.node.engines.vllm import VllmEngine
from workers.node.errors import CommandError, SettingError
from workers.node.fetch import Fetcher
from workers.node.ledger import Ledger
from workers.node.probe import Prober
from workers.node.reports import Courier, Outbox, Outcome, Web, WebClient
from workers.node.settings import Settings
from workers.node.taint import TaintMark
from workers.node.tombstones import Tombstones
from workers.node.verify import Verifier

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Agent:
    """Everything a command or a heartbeat works with.

    `busy` is held while the engine or the disk is changed; `grace_s` is the least time between unload and deletion.
    """

    cache: DiskCache
    ledger: Ledger
    tombstones: Tombstones
    taint: TaintMark
    engine: Engine
    verifier: Verifier
    fetcher: Fetcher
    prober: Prober
    courier: Courier
    web: Web
    grace_s: float
    stopwatch: Callable[[], float] = time.monotonic
    busy: Lock = field(default_factory=Lock)

    def report(self, outcome: Outcome) -> None:
        """Have web told; delivered later and in order, whatever happens to web or to this process."""
        why = f": {outcome.message}" if outcome.message else ""
        _log.info("%s g%d %s%s", outcome.engine_name, outcome.generation, outcome.outcome, why)
        self.courier.submit(outcome)

    def conclude(self, outcome: Outcome) -> Outcome:
        """Report how a command ended, then note it: a crash between makes the command run again, and report again."""
        self.report(outcome)
        self.ledger.finish(outcome)
        return outcome

    def refuse(self, data: object, error: CommandError) -> None:
        """Report a command that is malformed, if it can be told whose it is."""
        _log.error("refused a command: %s", error)
        address = address_of(data)
        if address is not None:
            name, generation = address
            self.courier.submit(Outcome(name, generation, "failed", str(error), error.error_class))


def build_agent(settings: Settings) -> Agent:
    """Open the cache folder, clear what a crash left there, and connect the parts.

    Raises:
        SettingError: the trusted keys can't be read.

    """
    root = settings.cache
    cache = DiskCache(root, budget_bytes=settings.disk_bytes)
    cache.prepare()
    engine = VllmEngine(settings.engine_url)
    web = WebClient(settings.web_url, settings.token)
    return Agent(
        cache=cache,
        ledger=Ledger(root / "ledger"),
        tombstones=Tombstones(root / "tombstones", clock=time.time),
        taint=TaintMark(root / "taint.json"),
        engine=engine,
        verifier=Verifier(_trusted_keys(settings.trusted_keys), node=settings.node),
        fetcher=Fetcher(),
        prober=Prober(engine, base_model=settings.base_model, tolerance=settings.probe_tolerance),
        courier=Courier(Outbox(root / "outbox"), web),
        web=web,
        grace_s=settings.evict_grace_s,
    )


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
