"""vLLM with our plugin in it: residency is read back and an unload frees memory; without it all is as before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.engine_vllm import FakeEngineServer
from tests.integration.workers.node.engines.contenders import BASE, write_adapter
from workers.node.engines.vllm import VllmEngine


@pytest.fixture(scope="module")
def server() -> Iterator[FakeEngineServer]:
    with FakeEngineServer(base=BASE, gpu_slots=1, cpu_slots=2) as made:
        yield made


@pytest.fixture
def fake(server: FakeEngineServer, tmp_path: Path) -> FakeEngineServer:
    server.reset()
    server.faults.plugin_token = "t"
    return server


@pytest.fixture
def engine(fake: FakeEngineServer, tmp_path: Path) -> Iterator[VllmEngine]:
    driver = VllmEngine(fake.url, residency_token="t")
    for seed, name in enumerate(("lk-a", "lk-b", "lk-c")):
        driver.load(name=name, path=write_adapter(tmp_path / name, seed=seed))
    yield driver
    driver.close()


def test_it_is_told_which_adapters_are_in_a_slot_and_which_in_memory(engine: VllmEngine) -> None:
    assert engine.tiers() == {"lk-b": "cpu", "lk-c": "gpu"}
    engine.read_prompt(model="lk-b", prompt="hi there")
    assert engine.tiers() == {"lk-c": "cpu", "lk-b": "gpu"}


def test_an_unload_frees_memory_and_twice_is_success(engine: VllmEngine, fake: FakeEngineServer) -> None:
    engine.unload("lk-c")
    engine.unload("lk-c")
    assert (len(fake.state.cpu), len(fake.state.gpu)) == (1, 0)
    assert [adapter.name for adapter in engine.list_loaded()] == ["lk-a", "lk-b"]


def test_without_the_plugin_it_is_not_told_and_an_unload_only_forgets(
    engine: VllmEngine, fake: FakeEngineServer, caplog: pytest.LogCaptureFixture
) -> None:
    fake.faults.plugin_token = ""
    assert engine.tiers() is None
    engine.unload("lk-c")
    assert len(fake.state.cpu) == 2
    assert "lk-c" not in {adapter.name for adapter in engine.list_loaded()}
    assert caplog.text.count("without the residency plugin") == 1


def test_a_plugin_that_fails_does_not_keep_an_adapter_in_the_engine(
    engine: VllmEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = engine._connection.send

    def failing(method: str, path: str, *args: Any, **options: Any) -> httpx.Response:
        if path.startswith("/lorekeeper/"):
            return httpx.Response(500, json={"detail": "WorkerBase has no _adapter_manager"})
        return send(method, path, *args, **options)

    monkeypatch.setattr(engine._connection, "send", failing)
    engine.unload("lk-c")
    assert "lk-c" not in {adapter.name for adapter in engine.list_loaded()}
