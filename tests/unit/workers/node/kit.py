"""Signed releases as commands, an engine in memory, and an agent put together from them."""

import errno
import hashlib
import math
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from registry.naming import engine_name
from registry.signing.bundle import ReleaseClaims, sign_files, sign_release
from registry.signing.grants import EVICT, FETCH, LOAD, Grant, command_digest, issue_grant
from registry.signing.local_key import LocalKeySigner
from registry.signing.manifest import SignedFile, root_digest
from registry.signing.verify import TrustedKeys
from tests.factories.adapters import adapter_files
from workers.node.agent import Agent, make_turn
from workers.node.courier import Courier, Outbox
from workers.node.disk.cache import DiskCache
from workers.node.disk.fetch import Fetcher
from workers.node.disk.tombstones import Tombstones
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.engines.ports import Boot, Capabilities, Engine, EngineTier, LoadedAdapter, Reading, Restarter
from workers.node.errors import EngineAwayError, NodeError
from workers.node.health.recycle import Recycler
from workers.node.health.references import References
from workers.node.health.standstill import Patience, Standstill
from workers.node.health.watch import EngineWatch
from workers.node.jobs.drain import Drain
from workers.node.ledger import Ledger
from workers.node.limits import Limits, LimitsBook
from workers.node.probe import Prober
from workers.node.reports import Outcome, Web
from workers.node.taint import TaintMark
from workers.node.verify import Verifier

NODE = "edge-1"
BASE = "base"
BASE_REVISION = "b" * 64
STORE = "http://store.test/"

Command = dict[str, Any]


@dataclass(frozen=True)
class Release:
    """A signed version, ready to be commanded."""

    signer: LocalKeySigner
    contents: Mapping[str, bytes]
    files: tuple[SignedFile, ...]
    claims: ReleaseClaims
    bundle: str
    attestation: str
    store: str = STORE

    @property
    def name(self) -> str:
        return self.claims.engine_name

    def granted(self, command: Command, *, now: datetime | None = None, **changes: Any) -> Command:
        """The command with a grant for it; `changes` are to what the grant says."""
        present = now or datetime.now(UTC)
        claims = {
            "node": NODE,
            "version_id": "00000000-0000-0000-0000-000000000001",
            "engine_name": self.name,
            "tenant": self.claims.tenant,
            "adapter": self.claims.adapter,
            "version": self.claims.version,
            "base_revision": self.claims.base_revision,
            "root_digest": self.claims.root_digest,
            "generation": command["generation"],
            "expires_at": present + timedelta(minutes=5),
            "command": command_digest(command),
            **changes,
        }
        return {**command, "grant": issue_grant(self.signer, Grant(**claims), now=present)}

    def warm(self, *, generation: int = 1, granted: Command | None = None, **changes: Any) -> Command:
        command = {**self._files(generation), "probe_reference": None, **changes}
        return self.granted(command, **{"action": LOAD, **(granted or {})})

    def fetch(self, *, generation: int = 1, granted: Command | None = None, **changes: Any) -> Command:
        command = {**self._files(generation), **changes}
        return self.granted(command, **{"action": FETCH, **(granted or {})})

    def _files(self, generation: int) -> Command:
        files = [
            {"path": file.path, "size": file.size, "sha256": file.sha256, "url": f"{self.store}{file.sha256}"}
            for file in self.files
        ]
        return {
            "generation": generation,
            "engine_name": self.name,
            "bundle": self.bundle,
            "attestation": self.attestation,
            "files": files,
        }

    def evict(
        self,
        *,
        generation: int = 2,
        grace_s: float = 0,
        to: str = "absent",
        drain_s: float = 0,
        granted: Command | None = None,
    ) -> Command:
        head = {"generation": generation, "engine_name": self.name}
        command = {**head, "grace_s": grace_s, "to": to, "drain_s": drain_s}
        return self.granted(command, **{"action": EVICT, **(granted or {})})


def make_release(
    signer: LocalKeySigner, *, version: str = "2026-07-04.1", seed: int = 0, store: str = STORE, **contents: bytes
) -> Release:
    return sign_contents(signer, contents or adapter_files(seed=seed), version=version, store=store)


def sign_contents(
    signer: LocalKeySigner, contents: Mapping[str, bytes], *, version: str = "2026-07-04.1", store: str = STORE
) -> Release:
    files = tuple(SignedFile(path, len(data), sha256_of(data)) for path, data in sorted(contents.items()))
    root = root_digest(files)
    name = engine_name(
        tenant="acme", adapter="support-tone", version=version, base_digest=BASE_REVISION, root_digest=root
    )
    claims = ReleaseClaims(
        tenant="acme",
        adapter="support-tone",
        version=version,
        base_model=BASE,
        base_revision=BASE_REVISION,
        rank=4,
        root_digest=root,
        engine_name=name,
        validation_digest="c" * 64,
        approvals=(),
    )
    return Release(
        signer, contents, files, claims, sign_files(signer, files), sign_release(signer, claims, files), store
    )


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class MemoryEngine:
    """An engine that only remembers; `reads` is how each model reads the prompt, `load_error` what loads raise.

    `pin_error` is what loads with a pin raise, `pinned` what was loaded with one.
    """

    capabilities: Capabilities = CAPABILITIES["vllm"]
    boot_id: str = "boot-1"
    healthy: bool = True
    away: bool = False
    roots: dict[str, str] = field(default_factory=dict)
    reads: dict[str, tuple[float, ...]] = field(default_factory=dict)
    answers_as: str | None = None
    load_error: NodeError | None = None
    pin_error: NodeError | None = None
    pinned: set[str] = field(default_factory=set)
    calls: list[tuple[str, str]] = field(default_factory=list)
    busy: frozenset[str] = frozenset()
    steps: float | None = None

    def close(self) -> None:
        self.calls.append(("close", ""))

    def boot(self) -> Boot:
        self._check()
        return Boot(self.boot_id, self.healthy)

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        self._check()
        return tuple(LoadedAdapter(name, root) for name, root in self.roots.items())

    def load(self, *, name: str, path: Path, pinned: bool = False) -> None:
        self._check()
        self.calls.append(("load", name))
        if self.load_error:
            raise self.load_error
        if pinned and self.pin_error:
            raise self.pin_error
        if pinned:
            self.pinned.add(name)
        assert (path / "model.sig").is_file()
        self.roots[name] = str(path)

    def unload(self, name: str) -> None:
        self._check()
        self.calls.append(("unload", name))
        self.roots.pop(name, None)

    def read_prompt(self, *, model: str, prompt: str) -> Reading:
        self._check()
        self.calls.append(("read", model))
        usual = (-1.0, -2.0) if model == BASE else (-1.5, -2.25)
        return Reading(self.answers_as or model, self.reads.get(model, usual))

    def in_use(self) -> frozenset[str]:
        self._check()
        return self.busy

    def tiers(self) -> Mapping[str, EngineTier] | None:
        return None

    def steady(self) -> AbstractContextManager[None]:
        return nullcontext()

    def progress(self) -> float | None:
        self._check()
        return self.steps

    def restart(self, boot_id: str) -> None:
        self.boot_id = boot_id
        self.roots.clear()

    def _check(self) -> None:
        if self.away:
            raise EngineAwayError("the engine does not answer: ConnectError")


NAN = (math.nan, -1.0)


@dataclass
class MemoryWeb:
    """Web that keeps what it is told; `error` is raised while it is set."""

    reports: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    error: NodeError | None = None
    answer: dict[str, Any] = field(default_factory=dict)

    def report(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self._check()
        self.reports.append(dict(body))
        return {"ok": True, "unknown": self.unknown, **self.answer}

    def outcome(self, body: Mapping[str, Any]) -> None:
        self._check()
        self.outcomes.append(dict(body))

    def _check(self) -> None:
        if self.error:
            raise self.error


@dataclass
class Store:
    """An object store over httpx's mock transport: content by the last part of the URL; `status` breaks it."""

    objects: dict[str, bytes] = field(default_factory=dict)
    status: int = 200
    asked: list[str] = field(default_factory=list)

    def add(self, release: Release) -> None:
        self.objects |= {file.sha256: release.contents[file.path] for file in release.files}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        key = request.url.path.rpartition("/")[2]
        self.asked.append(key)
        if self.status != 200:
            return httpx.Response(self.status)
        return (
            httpx.Response(200, stream=httpx.ByteStream(self.objects[key]))
            if key in self.objects
            else httpx.Response(404)
        )


@dataclass
class FullDisk:
    """Stands in for what writes to a disk: while it is full, nothing is written. A file can still be removed."""

    is_full: bool = False

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write_bytes, fallocate = Path.write_bytes, os.posix_fallocate

        def written(path: Path, data: bytes) -> int:
            self._check()
            return write_bytes(path, data)

        def allocated(descriptor: int, offset: int, size: int) -> None:
            self._check()
            fallocate(descriptor, offset, size)

        monkeypatch.setattr(Path, "write_bytes", written)
        monkeypatch.setattr(os, "posix_fallocate", allocated)

    def _check(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class PromptCourier(Courier):
    """Delivers each step before the next can overtake it."""

    def tell(self, outcome: Outcome) -> None:
        super().tell(outcome)
        self.deliver()


@dataclass
class MemoryRestarter:
    """Counts; `error` is raised while it is set."""

    available: bool = True
    calls: int = 0
    error: NodeError | None = None

    def restart(self) -> None:
        self.calls += 1
        if self.error:
            raise self.error


@dataclass
class Clock:
    """A wall clock that stands still."""

    time: float = 1_000_000.0

    def __call__(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@dataclass
class Rig:
    """An agent, and the world around it."""

    root: Path
    signer: LocalKeySigner
    engine: MemoryEngine = field(default_factory=MemoryEngine)
    web: MemoryWeb = field(default_factory=MemoryWeb)
    store: Store = field(default_factory=Store)
    clock: Clock = field(default_factory=Clock)
    limits: Limits = field(default_factory=Limits)
    restarter: MemoryRestarter = field(default_factory=MemoryRestarter)
    download_threads: int = 4

    def agent(self) -> Agent:
        """A fresh agent on the same disk, as after a restart."""
        http = httpx.Client(transport=httpx.MockTransport(self.store), follow_redirects=False)
        return assemble(
            self.root,
            keys=TrustedKeys.from_pem(self.signer.public_pem()),
            engine=self.engine,
            web=self.web,
            fetcher=Fetcher(http, sleep=lambda _: None, threads=self.download_threads),
            clock=self.clock,
            limits=self.limits,
            restarter=self.restarter,
        )

    def release(self, **kwargs: Any) -> Release:
        """A signed version whose files are in the store."""
        release = make_release(self.signer, **kwargs)
        self.store.add(release)
        return release

    def told(self, agent: Agent) -> list[str]:
        """Deliver, and return the kinds of all outcomes so far."""
        agent.courier.deliver()
        return [outcome["outcome"] for outcome in self.web.outcomes]


def assemble(
    root: Path,
    *,
    keys: TrustedKeys,
    engine: Engine,
    web: Web,
    fetcher: Fetcher,
    clock: Clock,
    limits: Limits | None = None,
    restarter: Restarter | None = None,
    base: str = BASE,
) -> Agent:
    cache = DiskCache(root, clock=clock)
    cache.prepare()
    tombstones = Tombstones(root / "tombstones", clock=clock)
    tombstones.make_whole(cache.names(), grace_s=10.0)
    turn = make_turn(engine, queue=2)
    return Agent(
        cache=cache,
        ledger=Ledger(root / "ledger", may_forget=engine.capabilities.lists_adapters),
        tombstones=tombstones,
        references=References(root / "references"),
        taint=TaintMark(root / "taint.json"),
        engine=engine,
        watch=EngineWatch(engine, clock=clock),
        standstill=Standstill(engine, Patience(50, 600, 240), is_asked=turn.is_taken, clock=clock),
        recycler=Recycler(restarter or MemoryRestarter(), root / "recycled.json", clock=clock),
        verifier=Verifier(keys, node=NODE),
        fetcher=fetcher,
        prober=Prober(engine, base_model=base, sleep=lambda _: None),
        courier=PromptCourier(Outbox(root / "outbox", clock=count().__next__), web),
        web=web,
        limits=LimitsBook(limits or Limits()),
        turn=turn,
        drain=Drain(engine, clock=clock, sleep=clock.sleep),
        grace_s=10.0,
    )
