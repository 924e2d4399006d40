"""What only LoRAX does: loading with the first request, dropping and reading again; and its errors by their texts."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.fakes.engine_lorax import FakeLoraxServer
from tests.integration.workers.node.engines.contenders import BASE, write_adapter
from workers.node.engines.book import Book
from workers.node.engines.lorax import LoraxEngine
from workers.node.errors import EngineAwayError, EngineError, EngineFailedError, EngineFullError, EngineRefusedError


@pytest.fixture(scope="module")
def server() -> Iterator[FakeLoraxServer]:
    with FakeLoraxServer(base=BASE, places=2) as made:
        yield made


@pytest.fixture
def fake(server: FakeLoraxServer) -> FakeLoraxServer:
    server.reset()
    server.state.disk_reads = 0
    return server


@pytest.fixture
def engine(fake: FakeLoraxServer, tmp_path: Path) -> Iterator[LoraxEngine]:
    fake.state.cache = tmp_path
    driver = LoraxEngine(fake.url, base_model=BASE, book=Book(tmp_path / "lorax.json", kind="lorax"))
    yield driver
    driver.close()


def load(engine: LoraxEngine, folder: Path, *names: str) -> None:
    for name in names:
        engine.load(name=name, path=write_adapter(folder / name, seed=len(name)))


def test_warming_is_one_token_and_leaves_the_adapter_on_the_gpu(
    engine: LoraxEngine, fake: FakeLoraxServer, tmp_path: Path
) -> None:
    load(engine, tmp_path, "lk-a")
    assert list(fake.state.loaded) == ["lk-a"]
    assert fake.state.requests[-1] == ("generate", "lk-a")


def test_what_was_dropped_is_read_again_with_the_next_request(
    engine: LoraxEngine, fake: FakeLoraxServer, tmp_path: Path
) -> None:
    load(engine, tmp_path, "lk-a", "lk-b", "lk-c")
    assert "lk-a" not in fake.state.loaded
    engine.read_prompt(model="lk-a", prompt="one two")
    assert fake.state.disk_reads == 4


def test_files_that_are_gone_fail_their_own_requests_alone(
    engine: LoraxEngine, fake: FakeLoraxServer, tmp_path: Path
) -> None:
    load(engine, tmp_path, "lk-a", "lk-b", "lk-c")
    (tmp_path / "lk-a" / "adapter_model.safetensors").unlink()
    with pytest.raises(EngineRefusedError, match="No local weights found"):
        engine.read_prompt(model="lk-a", prompt="one two")
    engine.read_prompt(model="lk-c", prompt="one two")
    assert engine.boot().healthy


def test_an_unload_is_not_told_to_the_engine(engine: LoraxEngine, fake: FakeLoraxServer, tmp_path: Path) -> None:
    load(engine, tmp_path, "lk-a")
    engine.unload("lk-a")
    assert list(fake.state.loaded) == ["lk-a"]
    adapter = {"adapter_id": "lk-a", "adapter_source": "local", "max_new_tokens": 1}
    said = httpx.post(f"{fake.url}/generate", json={"inputs": "hi", "parameters": adapter}).json()
    assert said["generated_text"] == "[lk-a] "


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Server error: CUDA out of memory. Tried to allocate 20 MiB", EngineFullError),
        ("Server error: adapter exceeds the memory fraction that is left", EngineFullError),
        ("Server error: Adapter 'a' is not compatible with model 'b'. Architectures differ", EngineRefusedError),
        ("transport error: shard 0", EngineAwayError),
        ("Server error: The size of tensor a (576) must match the size of tensor b (1152)", EngineFailedError),
    ],
)
def test_a_failed_load_is_classed_by_its_text(
    engine: LoraxEngine, fake: FakeLoraxServer, tmp_path: Path, text: str, kind: type[EngineError]
) -> None:
    fake.faults.load_error = text
    with pytest.raises(kind, match="HTTP 424"):
        load(engine, tmp_path, "lk-a")
    assert engine.list_loaded() == ()


def test_an_engine_with_too_much_to_do_is_not_well_now(
    engine: LoraxEngine, fake: FakeLoraxServer, tmp_path: Path
) -> None:
    fake.faults.overloaded = True
    with pytest.raises(EngineAwayError, match="overloaded"):
        load(engine, tmp_path, "lk-a")


def test_a_restarted_agent_knows_what_this_life_was_given(
    engine: LoraxEngine, fake: FakeLoraxServer, tmp_path: Path
) -> None:
    load(engine, tmp_path, "lk-a")
    again = LoraxEngine(fake.url, base_model=BASE, book=Book(tmp_path / "lorax.json", kind="lorax"))
    assert again.boot().id == engine.boot().id
    assert again.list_loaded() == engine.list_loaded()
    again.close()


def test_an_engine_that_says_it_is_not_well_is_believed(engine: LoraxEngine, fake: FakeLoraxServer) -> None:
    fake.faults.unhealthy = True
    assert engine.boot().healthy is False
