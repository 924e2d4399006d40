"""Which adapters vLLM says are in use."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.fakes.engine_vllm import FakeEngineServer
from tests.integration.workers.node.engines.contenders import BASE, write_adapter
from workers.node.engines.vllm import VllmEngine


@pytest.fixture(scope="module")
def server() -> Iterator[FakeEngineServer]:
    with FakeEngineServer(base=BASE) as made:
        yield made


@pytest.fixture
def fake(server: FakeEngineServer) -> FakeEngineServer:
    server.reset()
    return server


@pytest.fixture
def engine(fake: FakeEngineServer) -> Iterator[VllmEngine]:
    driver = VllmEngine(fake.url)
    yield driver
    driver.close()


def test_it_is_what_runs_now_and_not_what_ever_ran(engine: VllmEngine, fake: FakeEngineServer, tmp_path: Path) -> None:
    folders = {name: write_adapter(tmp_path / name) for name in ("lk-a", "lk-b")}
    for name, path in folders.items():
        engine.load(name=name, path=path)
    assert engine.in_use() == frozenset()
    fake.faults.token_delay_s = 0.25
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(_ask, fake.url, name) for name in folders]
        seen = set[frozenset[str] | None]()
        while not all(each.done() for each in asked):
            seen.add(engine.in_use())
    assert frozenset(folders) in seen
    assert engine.in_use() == frozenset()
    assert len(fake.state.series) > 1


def test_the_base_is_not_among_them(engine: VllmEngine, fake: FakeEngineServer) -> None:
    _ask(fake.url, BASE)
    assert engine.in_use() == frozenset()


def test_while_requests_wait_it_is_not_told_whose_they_are(engine: VllmEngine, fake: FakeEngineServer) -> None:
    fake.faults.waiting = 1
    assert engine.in_use() is None


def _ask(url: str, model: str) -> None:
    body = {"model": model, "prompt": "hi", "max_tokens": 1}
    assert httpx.post(f"{url}/v1/completions", json=body, trust_env=False).is_success
