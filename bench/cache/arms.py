"""The two arms: the same load on the same engine, driven by hand and by Lorekeeper."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3
import httpx
from botocore.config import Config

from bench.cache.asking import PATIENCE_S, Answer, completion, send_all, stream
from bench.cache.engine import engine_of, learn_voices
from bench.cache.figures import Figures, figures_of
from bench.cache.identity import MARGIN
from bench.cache.ledger import Ledger
from bench.cache.naive import NaiveDriver, object_name
from bench.cache.origin import Origin
from bench.cache.reads import Reads
from bench.cache.stage import Stage
from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.seaweed import PORT_NAMES, REGION, S3Credentials, SeaweedServer
from deploy.embedded.system.secret_files import random_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mypy_boto3_s3 import S3Client

    from bench.cache.adapters import Built
    from bench.cache.identity import Voices
    from bench.cache.load import Arrival
    from bench.cache.plan import Plan

_CONNECTIONS = 32


@dataclass(frozen=True, slots=True)
class Materials:
    """What both arms are made from."""

    work: Path
    python: Path
    base: Path
    versions: Sequence[Built]
    load: Sequence[Arrival]
    plan: Plan

    @property
    def by_number(self) -> dict[int, Built]:
        return {version.number: version for version in self.versions}

    def origin(self) -> Origin:
        return Origin(latency_s=self.plan.latency_s, bytes_per_s=self.plan.bytes_per_s)


@dataclass(frozen=True, slots=True)
class Outcome:
    """An arm's figures, how the versions sound, what else is to be told, and what must not have happened but did."""

    figures: Figures
    voices: Voices
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


async def by_hand(materials: Materials) -> Outcome:
    """Learn how each version sounds, then run the load with the driver that a person would write."""
    folder = materials.work / "by-hand"
    reads = Reads(folder)
    engine = engine_of(folder / "engine", materials.python, materials.base, materials.plan, reads)
    ports: dict[str, int] = {}
    for name in PORT_NAMES:
        ports[name] = free_port(avoid=ports.values())
    credentials = S3Credentials(random_text(octets=9), random_text(), random_text())
    store = SeaweedServer(folder / "s3", ports=ports, credentials=credentials)
    with materials.origin() as origin, store, engine:
        origin.upstream = (LOOPBACK, ports["s3.http"])
        _fill(store, materials.versions)
        voices = await learn_voices(engine.url, materials.versions, materials.plan)
        if voices.closest() < MARGIN:
            raise RuntimeError(f"two versions are only {voices.closest():.3f} nats apart: take another seed")
        async with _client() as http:
            driver = NaiveDriver(
                http,
                engine.url,
                store=_far_client(origin, credentials),
                bucket=store.bucket,
                folder=folder / "disk",
                versions=materials.by_number,
                plan=materials.plan,
            )
            began, sent = time.time(), origin.sent_bytes
            answers = await send_all(materials.load, driver.send)
        figures = figures_of(
            answers,
            versions=materials.by_number,
            voices=voices,
            reads=reads.since(began),
            downloaded=origin.sent_bytes - sent,
            crashed=not engine.running,
        )
    return Outcome(figures, voices, faults=figures.faults())


async def by_lorekeeper(materials: Materials, voices: Voices) -> Outcome:
    """Run the load through the gateway of a whole stack."""
    folder = materials.work / "stack"
    reads = Reads(materials.work / "stack-reads")
    with materials.origin() as origin, ExitStack() as closing:
        stage = Stage(
            folder,
            python=materials.python,
            base=materials.base,
            versions=materials.versions,
            plan=materials.plan,
            reads=reads,
            origin=origin,
        )
        closing.callback(stage.stack.stop)
        stage.prepare()
        stage.release()
        engine = stage.stack.pid_of("engine")
        admin = closing.enter_context(stage.admin())
        async with _client() as http:
            began, sent = time.time(), origin.sent_bytes
            with Ledger(admin, materials.plan) as ledger:
                answers = await send_all(materials.load, Application(http, stage, materials).send)
        figures = figures_of(
            answers,
            versions=materials.by_number,
            voices=voices,
            reads=reads.since(began),
            downloaded=origin.sent_bytes - sent,
            crashed=stage.stack.pid_of("engine") != engine,
        )
        broken = stage.broken_audits()
    return Outcome(figures, voices, notes=_notes(answers, ledger), faults=_faults(figures, ledger, broken))


class Application:
    """Asks the gateway, with the token of the version's tenant and the alias of the version."""

    def __init__(self, http: httpx.AsyncClient, stage: Stage, materials: Materials) -> None:
        """Prepare nothing: every request says all."""
        self._http = http
        self._url = stage.stack.urls["gateway"]
        self._tenants = stage.tenants
        self._versions = materials.by_number
        self._plan = materials.plan

    async def send(self, answer: Answer, due: float) -> None:
        """Ask once."""
        version = self._versions[answer.version]
        headers = {"Authorization": f"Bearer {self._tenants[version.tenant].application}"}
        body = completion(version.alias, self._plan.tokens)
        said = await stream(self._http, self._url, body, answer, began=due, headers=headers)
        answer.said = said.get("x-lorekeeper-version", "")
        answer.tier = said.get("x-lorekeeper-tier", "")
        answer.found = answer.tier in {"gpu", "cpu"}


def _notes(answers: Sequence[Answer], ledger: Ledger) -> list[str]:
    tiers = {tier: sum(answer.tier == tier for answer in answers) for tier in ("gpu", "cpu", "disk", "remote")}
    return [
        "found in " + ", ".join(f"{tier} {times}" for tier, times in tiers.items()),
        ledger.told(),
    ]


def _faults(figures: Figures, ledger: Ledger, broken: list[str]) -> list[str]:
    unsound = [f"{len(broken)} audit logs don't verify"] if broken else []
    return [*figures.faults(), *ledger.faults(), *unsound]


def _client() -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=_CONNECTIONS)
    return httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S, limits=limits)


def _fill(store: SeaweedServer, versions: Sequence[Built]) -> None:
    client = store.client()
    for version in versions:
        for file in version.folder.iterdir():
            client.upload_file(str(file), store.bucket, object_name(version.number, file.name))


def _far_client(origin: Origin, credentials: S3Credentials) -> S3Client:
    return boto3.client(
        "s3",
        endpoint_url=origin.url,
        aws_access_key_id=credentials.access_key,
        aws_secret_access_key=credentials.secret_key,
        region_name=REGION,
        config=Config(
            signature_version="s3v4", s3={"addressing_style": "path"}, proxies={}, max_pool_connections=_CONNECTIONS
        ),
    )
