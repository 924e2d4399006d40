"""What only SGLang does: pins, an unload that waits, names that come back; and its errors by their texts."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import httpx
import pytest

from tests.fakes.engine_sglang import FakeSglangServer
from tests.integration.workers.node.engines.contenders import BASE, write_adapter
from workers.node.engines.book import Book
from workers.node.engines.sglang import SglangEngine
from workers.node.errors import (
    EngineAwayError,
    EngineBusyError,
    EngineError,
    EngineFailedError,
    EngineFullError,
    EngineRefusedError,
)

DRAIN_S = 0.15


@pytest.fixture(scope="module")
def server() -> Iterator[FakeSglangServer]:
    with FakeSglangServer(base=BASE, slots=3) as made:
        yield made


@pytest.fixture
def fake(server: FakeSglangServer) -> FakeSglangServer:
    server.reset()
    server.state.max_loaded = None
    return server


@pytest.fixture
def engine(fake: FakeSglangServer, tmp_path: Path) -> Iterator[SglangEngine]:
    book = Book(tmp_path / "sglang.json", kind="sglang")
    driver = SglangEngine(fake.url, base_model=BASE, book=book, drain_s=DRAIN_S)
    yield driver
    fake.faults.stuck = ""
    driver.close()


def load(engine: SglangEngine, folder: Path, *names: str, pinned: bool = False) -> None:
    for name in names:
        engine.load(name=name, path=write_adapter(folder / name, seed=len(name)), pinned=pinned)


def names(engine: SglangEngine) -> list[str]:
    return [adapter.name for adapter in engine.list_loaded()]


def test_a_pin_is_passed_on_and_all_slots_but_one_can_be_pinned(
    engine: SglangEngine, fake: FakeSglangServer, tmp_path: Path
) -> None:
    load(engine, tmp_path, "lk-a", "lk-b", pinned=True)
    assert [adapter.pinned for adapter in fake.state.registry.values()] == [True, True]
    with pytest.raises(EngineFullError, match="not allowed to pin all slots") as caught:
        load(engine, tmp_path, "lk-c", pinned=True)
    assert caught.value.error_class == "capacity"
    load(engine, tmp_path, "lk-d")
    assert names(engine) == ["lk-a", "lk-b", "lk-d"]


def test_an_unload_that_waits_is_broken_off_and_can_be_asked_for_again(
    engine: SglangEngine, fake: FakeSglangServer, tmp_path: Path
) -> None:
    load(engine, tmp_path, "lk-a")
    fake.faults.stuck = "lk-a"
    with pytest.raises(EngineBusyError, match="have been using lk-a") as caught:
        engine.unload("lk-a")
    assert caught.value.error_class == "transient"
    assert names(engine) == []
    with pytest.raises(EngineBusyError):
        engine.unload("lk-a")
    fake.faults.stuck = ""
    engine.unload("lk-a")


def test_an_unload_waits_for_a_request_that_ends_in_time(
    engine: SglangEngine, fake: FakeSglangServer, tmp_path: Path
) -> None:
    load(engine, tmp_path, "lk-a")
    fake.faults.stuck = "lk-a"
    Timer(0.03, lambda: setattr(fake.faults, "stuck", "")).start()
    engine.unload("lk-a")


def test_an_unloaded_name_comes_back_with_a_request_but_not_with_one_of_the_driver(
    engine: SglangEngine, fake: FakeSglangServer, tmp_path: Path
) -> None:
    load(engine, tmp_path, "lk-a")
    engine.unload("lk-a")
    with pytest.raises(EngineAwayError, match="does not know lk-a"):
        engine.read_prompt(model="lk-a", prompt="hi")
    assert names(engine) == []
    body = {"model": f"{BASE}:lk-a", "prompt": "hi", "max_tokens": 1}
    assert httpx.post(f"{fake.url}/v1/completions", json=body).is_success
    assert names(engine) == ["lk-a"]


def test_what_the_engine_drops_by_itself_is_no_more_listed(
    engine: SglangEngine, fake: FakeSglangServer, tmp_path: Path
) -> None:
    fake.state.max_loaded = 2
    load(engine, tmp_path, "lk-pinned", pinned=True)
    load(engine, tmp_path, "lk-b", "lk-c")
    assert names(engine) == ["lk-pinned", "lk-c"]


@pytest.mark.parametrize("change", [{"r": 512}, {"use_dora": True}])
def test_an_adapter_that_it_cannot_serve_is_refused(
    engine: SglangEngine, tmp_path: Path, change: dict[str, object]
) -> None:
    folder = write_adapter(tmp_path / "bad")
    config = folder / "adapter_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **change}))
    with pytest.raises(EngineRefusedError, match=r"incompatible with|doesn't support"):
        engine.load(name="lk-a", path=folder)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CUDA out of memory. Tried to allocate 20 MiB", EngineFullError),
        ("Didn't find any LoRA adapters when trying to evict LRU LoRA adapter.", EngineFullError),
        ("LoRA is not enabled. Please set `--enable-lora` to enable LoRA.", EngineRefusedError),
        ("dp_size must be 1 for dynamic lora loading", EngineRefusedError),
        ("scheduler is not responding", EngineAwayError),
        ("The size of tensor a (576) must match the size of tensor b (1152)", EngineFailedError),
    ],
)
def test_a_failed_load_is_classed_by_its_text(
    engine: SglangEngine, fake: FakeSglangServer, tmp_path: Path, text: str, kind: type[EngineError]
) -> None:
    fake.faults.load_error = text
    with pytest.raises(kind, match="HTTP 400"):
        load(engine, tmp_path, "lk-a")


def test_older_versions_tell_of_themselves_elsewhere(engine: SglangEngine, fake: FakeSglangServer) -> None:
    before = engine.boot()
    fake.faults.old_routes = True
    assert engine.boot() == before


def test_a_restart_with_a_given_seed_shows_as_a_refused_connection(
    engine: SglangEngine, fake: FakeSglangServer
) -> None:
    before = engine.boot()
    fake.halt()
    with pytest.raises(EngineAwayError, match="does not answer"):
        engine.boot()
    fake.launch()
    assert engine.boot().id != before.id


def test_an_engine_that_says_it_is_not_well_is_believed(engine: SglangEngine, fake: FakeSglangServer) -> None:
    fake.faults.unhealthy = True
    assert engine.boot().healthy is False
