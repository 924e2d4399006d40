"""Signed releases as commands, an engine in memory, and an agent put together from them."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from registry.naming import engine_name
from registry.signing.bundle import ReleaseClaims, sign_files, sign_release
from registry.signing.grants import EVICT, Grant, issue_grant
from registry.signing.local_key import LocalKeySigner
from registry.signing.manifest import SignedFile, root_digest
from registry.signing.verify import TrustedKeys
from tests.factories.adapters import adapter_files
from workers.node.agent import Agent
from workers.node.disk_cache import DiskCache
from workers.node.engines.ports import Boot, Capabilities, Engine, LoadedAdapter, Reading
from workers.node.errors import EngineAwayError, NodeError
from workers.node.fetch import Fetcher
from workers.node.ledger import Ledger
from workers.node.probe import Prober
from workers.node.reports import Courier, Outbox, Web
from workers.node.taint import TaintMark
from workers.node.tombstones import Tombstones
from workers.node.verify import Verifier

NODE = "edge-1"
BASE = "base"
BASE_REVISION = "b" * 64
STORE = "http://store.test/"


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

    def grant(self, *, generation: int = 1, node: str = NODE, now: datetime | None = None, **changes: Any) -> str:
        present = now or datetime.now(UTC)
        claims = {
            "version_id": "00000000-0000-0000-0000-000000000001",
            "engine_name": self.name,
            "tenant": self.claims.tenant,
            "adapter": self.claims.adapter,
            "version": self.claims.version,
            "base_revision": self.claims.base_revision,
            "root_digest": self.claims.root_digest,
            "expires_at": present + timedelta(minutes=5),
            **changes,
        }
        return issue_grant(self.signer, Grant(node=node, generation=generation, **claims), now=present)

    def warm(self, *, generation: int = 1, **changes: Any) -> dict[str, Any]:
        files = [
            {"path": file.path, "size": file.size, "sha256": file.sha256, "url": f"{self.store}{file.sha256}"}
            for file in self.files
        ]
        command = {
            "generation": generation,
            "engine_name": self.name,
            "grant": self.grant(generation=generation),
            "bundle": self.bundle,
            "attestation": self.attestation,
            "files": files,
            "probe_reference": None,
        }
        return {**command, **changes}

    def evict(self, *, generation: int = 2, grace_s: float = 0, node: str = NODE) -> dict[str, Any]:
        return {
            "generation": generation,
            "engine_name": self.name,
            "grant": self.grant(generation=generation, node=node, action=EVICT),
            "grace_s": grace_s,
        }


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
    """An engine that only remembers; `reads` is how each model reads the prompt, `load_error` what loads raise."""

    capabilities: Capabilities = field(default_factory=lambda: Capabilities(True, True, True, True))
    boot_id: str = "boot-1"
    healthy: bool = True
    away: bool = False
    roots: dict[str, str] = field(default_factory=dict)
    reads: dict[str, tuple[float, ...]] = field(default_factory=dict)
    answers_as: str | None = None
    load_error: NodeError | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)

    def boot(self) -> Boot:
        self._check()
        return Boot(self.boot_id, self.healthy)

    def list_loaded(self) -> tuple[LoadedAdapter, ...]:
        self._check()
        return tuple(LoadedAdapter(name, root) for name, root in self.roots.items())

    def load(self, *, name: str, path: Path) -> None:
        self._check()
        self.calls.append(("load", name))
        if self.load_error:
            raise self.load_error
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

    def report(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self._check()
        self.reports.append(dict(body))
        return {"ok": True, "unknown": self.unknown}

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
class Clock:
    """A wall clock that stands still."""

    time: float = 1_000_000.0

    def __call__(self) -> float:
        return self.time


@dataclass
class Rig:
    """An agent, and the world around it."""

    root: Path
    signer: LocalKeySigner
    engine: MemoryEngine = field(default_factory=MemoryEngine)
    web: MemoryWeb = field(default_factory=MemoryWeb)
    store: Store = field(default_factory=Store)
    clock: Clock = field(default_factory=Clock)
    budget_bytes: int | None = None

    def agent(self) -> Agent:
        """A fresh agent on the same disk, as after a restart."""
        http = httpx.Client(transport=httpx.MockTransport(self.store), follow_redirects=False)
        return assemble(
            self.root,
            keys=TrustedKeys.from_pem(self.signer.public_pem()),
            engine=self.engine,
            web=self.web,
            fetcher=Fetcher(http, sleep=lambda _: None),
            clock=self.clock,
            budget_bytes=self.budget_bytes,
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
    budget_bytes: int | None = None,
    base: str = BASE,
) -> Agent:
    cache = DiskCache(root, budget_bytes=budget_bytes)
    cache.prepare()
    return Agent(
        cache=cache,
        ledger=Ledger(root / "ledger"),
        tombstones=Tombstones(root / "tombstones", clock=clock),
        taint=TaintMark(root / "taint.json"),
        engine=engine,
        verifier=Verifier(keys, node=NODE),
        fetcher=fetcher,
        prober=Prober(engine, base_model=base, sleep=lambda _: None),
        courier=Courier(Outbox(root / "outbox"), web),
        web=web,
        grace_s=10.0,
    )
