"""Faults of vLLM that only the fake can show at will."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.factories.adapters import adapter_files
from tests.fakes.engine_vllm import FakeEngineServer
from tests.unit.workers.node.kit import BASE
from workers.node.engines.vllm import VllmEngine
from workers.node.errors import (
    EngineAwayError,
    EngineError,
    EngineFailedError,
    EngineFullError,
    EngineRefusedError,
    PoisonError,
    ProbeError,
    SickEngineError,
)
from workers.node.probe import Prober


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    return write(tmp_path / "adapter")


@pytest.fixture
def engine(fake: FakeEngineServer) -> Iterator[VllmEngine]:
    driver = VllmEngine(fake.url)
    yield driver
    driver.close()


def write(folder: Path, *, seed: int = 0, nan: bool = False) -> Path:
    folder.mkdir()
    for name, data in adapter_files(seed=seed).items():
        poison = nan and name.endswith(".safetensors")
        (folder / name).write_bytes(data[:-4] + b"\x00\x00\xc0\x7f" if poison else data)
    return folder


def probe(engine: VllmEngine, name: str) -> float:
    return Prober(engine, base_model=BASE, sleep=lambda _: None).probe(name, boot_id="any")


def test_a_restarted_engine_has_a_new_id_and_no_adapters(
    engine: VllmEngine, fake: FakeEngineServer, adapter: Path
) -> None:
    engine.load(name="lk-a", path=adapter)
    before = engine.boot()
    fake.state.restart()
    assert engine.boot().id != before.id
    assert engine.list_loaded() == ()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The size of tensor a (576) must match the size of tensor b (1152)", EngineFailedError),
        ("No free lora slots", EngineFullError),
        ("CUDA out of memory. Tried to allocate 20 MiB", EngineFullError),
        ("EngineCore encountered an issue", EngineAwayError),
    ],
)
def test_a_failed_load_is_classed_by_its_text(
    engine: VllmEngine, fake: FakeEngineServer, adapter: Path, text: str, kind: type[EngineError]
) -> None:
    fake.faults.load_error = text
    with pytest.raises(kind):
        engine.load(name="lk-a", path=adapter)


def test_an_engine_that_says_it_is_not_well_is_believed(engine: VllmEngine, fake: FakeEngineServer) -> None:
    fake.faults.unhealthy = True
    assert engine.boot().healthy is False


def test_nan_weights_poison_the_engine_while_it_says_it_is_well(
    engine: VllmEngine, fake: FakeEngineServer, adapter: Path, tmp_path: Path
) -> None:
    engine.load(name="lk-good", path=adapter)
    engine.load(name="lk-nan", path=write(tmp_path / "nan", seed=1, nan=True))
    probe(engine, "lk-good")
    with pytest.raises(PoisonError):
        probe(engine, "lk-nan")
    with pytest.raises(SickEngineError):
        probe(engine, "lk-good")
    assert engine.boot().healthy


def test_another_model_that_answers_is_noticed(engine: VllmEngine, fake: FakeEngineServer, adapter: Path) -> None:
    engine.load(name="lk-a", path=adapter)
    fake.faults.wrong_model = BASE
    with pytest.raises(ProbeError, match="asked for lk-a"):
        probe(engine, "lk-a")


def test_an_engine_that_ignores_the_adapter_is_noticed(
    engine: VllmEngine, fake: FakeEngineServer, adapter: Path
) -> None:
    engine.load(name="lk-a", path=adapter)
    fake.faults.ignores_adapter = True
    with pytest.raises(ProbeError, match="reads like the base"):
        probe(engine, "lk-a")


def test_a_slow_load_is_waited_for(engine: VllmEngine, fake: FakeEngineServer, adapter: Path) -> None:
    fake.faults.load_delay_s = 0.3
    engine.load(name="lk-a", path=adapter)
    assert [each.name for each in engine.list_loaded()] == ["lk-a"]


def test_base_and_adapter_never_share_a_batch(engine: VllmEngine, fake: FakeEngineServer, adapter: Path) -> None:
    engine.load(name="lk-a", path=adapter)
    probe(engine, "lk-a")
    assert fake.state.mixed_batches == 0
    assert [name for act, name in fake.state.requests if act == "generate"] == [BASE, BASE, "lk-a"]


def test_an_evicted_name_is_read_from_disk_again_and_the_engine_dies_without_its_files(
    engine: VllmEngine, fake: FakeEngineServer, tmp_path: Path
) -> None:
    folders = [write(tmp_path / f"a{seed}", seed=seed) for seed in range(3)]
    for seed, folder in enumerate(folders):
        engine.load(name=f"lk-{seed}", path=folder)
    assert probe(engine, "lk-0") > 0
    assert fake.state.disk_reads == 4
    (folders[1] / "adapter_model.safetensors").unlink()
    assert fake.state.cpu.keys().isdisjoint({2})
    with pytest.raises(EngineAwayError, match="does not answer"):
        engine.read_prompt(model="lk-1", prompt="hello")
    fake.join()
    with pytest.raises(EngineAwayError):
        engine.boot()


def test_an_engine_that_is_not_there_is_away() -> None:
    with (
        closing(VllmEngine("http://127.0.0.1:9")) as engine,
        pytest.raises(EngineAwayError, match="does not answer: ConnectError"),
    ):
        engine.boot()


def test_an_engine_without_runtime_loading_says_what_to_set(adapter: Path) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(404, json={"detail": "Not Found"}))
    with (
        closing(VllmEngine("http://engine.test", transport=transport)) as engine,
        pytest.raises(EngineRefusedError, match="VLLM_ALLOW_RUNTIME_LORA_UPDATING"),
    ):
        engine.load(name="lk-a", path=adapter)
