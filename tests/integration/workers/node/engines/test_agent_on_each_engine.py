"""The whole agent on each kind of engine: versions warmed at the same time, one taken away, and what is reported."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx
import pytest

from registry.signing.local_key import LocalKeySigner
from registry.signing.verify import TrustedKeys
from tests.factories.adapters import adapter_files
from tests.integration.workers.node.engines.contenders import BASE, Contender, Stand
from tests.unit.workers.node.kit import Clock, MemoryWeb, Release, Store, assemble, sign_contents
from workers.node.agent import Agent
from workers.node.commands import parse_evict, parse_warm
from workers.node.disk.fetch import Fetcher
from workers.node.engines.capabilities import CAPABILITIES
from workers.node.engines.ports import Reading
from workers.node.heartbeat import Heartbeat
from workers.node.jobs.evict import evict
from workers.node.jobs.warm import warm
from workers.node.reports import Outcome


@pytest.fixture(params=CAPABILITIES)
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Contender]:
    stand = Stand(request.param, tmp_path)
    # LoRAX looks for adapters in the folder of the contender.
    with stand.contender(tmp_path / "cache" / "versions") as made:
        yield made
    stand.close()


def test_versions_are_warmed_together_and_one_is_taken_away(
    subject: Contender, key: LocalKeySigner, tmp_path: Path
) -> None:
    store, web = Store(), MemoryWeb()
    agent = _agent(subject, key, store, web, tmp_path)
    releases = [_release(key, store, seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(lambda release: warm(agent, parse_warm(release.warm())), releases))
    assert [(end.outcome, end.message) for end in ends if end] == [("loaded", "")] * 2
    gone = evict(agent, parse_evict(releases[0].evict()))
    assert gone is not None
    assert gone.outcome == "evicted"
    Heartbeat(agent).beat()
    assert [each["name"] for each in web.reports[-1]["loaded"]] == [releases[1].name]
    assert {end.boot_id for end in ends if end} == {web.reports[-1]["boot_id"]}


def test_a_load_leaves_the_engine_alone_while_another_one_is_probed(
    subject: Contender, key: LocalKeySigner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On TGI a load is a restart."""
    store, read, probing = Store(), subject.engine.read_prompt, Event()
    agent = _agent(subject, key, store, MemoryWeb(), tmp_path)
    first, second = (_release(key, store, seed) for seed in (1, 2))

    def read_slowly(*, model: str, prompt: str) -> Reading:
        probing.set()
        time.sleep(0.1)
        return read(model=model, prompt=prompt)

    def load(release: Release) -> Outcome | None:
        return warm(agent, parse_warm(release.warm()))

    monkeypatch.setattr(subject.engine, "read_prompt", read_slowly)
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(load, first)]
        assert probing.wait(10)
        ends.append(pool.submit(load, second))
    assert [(end.outcome, end.message) for end in (each.result() for each in ends) if end] == [("loaded", "")] * 2


def _agent(subject: Contender, key: LocalKeySigner, store: Store, web: MemoryWeb, folder: Path) -> Agent:
    return assemble(
        folder / "cache",
        keys=TrustedKeys.from_pem(key.public_pem()),
        engine=subject.engine,
        web=web,
        fetcher=Fetcher(httpx.Client(transport=httpx.MockTransport(store)), sleep=lambda _: None),
        clock=Clock(),
        base=BASE,
    )


def _release(key: LocalKeySigner, store: Store, seed: int) -> Release:
    release = sign_contents(key, adapter_files(seed=seed, rank=8), version=f"2026-07-04.{seed}")
    store.add(release)
    return release
