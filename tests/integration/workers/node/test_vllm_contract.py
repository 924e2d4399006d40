"""What the agent relies on in vLLM: always against the fake, and against a real server when the environment names one.

LOREKEEPER_VLLM_URL names a running server without adapters, LOREKEEPER_TEST_ADAPTER a folder with one for its base. The
server is left as it was found: nothing that could poison it is loaded.
"""

import json
import math
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from safetensors.numpy import load_file, save_file

from registry.reports import PROBE_TEXT
from tests.factories.adapters import adapter_files
from tests.fakes.engine_vllm import FakeEngineServer
from tests.unit.workers.node.kit import BASE
from workers.node.engines.vllm import VllmEngine
from workers.node.errors import EngineAwayError, EngineRefusedError, NoEffectError
from workers.node.probe import Prober

REAL_URL = os.environ.get("LOREKEEPER_VLLM_URL", "")
REAL_ADAPTER = os.environ.get("LOREKEEPER_TEST_ADAPTER", "")
NEEDS_REAL = pytest.mark.skipif(not (REAL_URL and REAL_ADAPTER), reason="LOREKEEPER_VLLM_URL names no running vLLM")
NAMES = ("lk-contract-a", "lk-contract-b")


@dataclass(frozen=True)
class Server:
    """An engine to talk to, its base, and a good adapter on its disk."""

    url: str
    base: str
    adapter: Path

    def variant(self, folder: Path, **config: object) -> Path:
        """A copy of the adapter, with other values in its configuration."""
        shutil.copytree(self.adapter, folder)
        path = folder / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
        return folder


@pytest.fixture(params=["fake", pytest.param("real", marks=NEEDS_REAL)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    if request.param == "real":
        yield Server(REAL_URL, _base_of(REAL_URL), Path(REAL_ADAPTER).absolute())
        return
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    for name, data in adapter_files(rank=8).items():
        (adapter / name).write_bytes(data)
    with FakeEngineServer(base=BASE) as fake:
        yield Server(fake.url, BASE, adapter)


@pytest.fixture
def engine(server: Server) -> Iterator[VllmEngine]:
    driver = VllmEngine(server.url)
    yield driver
    for name in NAMES:
        driver.unload(name)
    driver.close()


def _base_of(url: str) -> str:
    return str(httpx.get(f"{url}/v1/models", trust_env=False).json()["data"][0]["id"])


def test_a_life_has_one_id_and_is_healthy(engine: VllmEngine) -> None:
    boot = engine.boot()
    assert boot.healthy
    assert boot.id.startswith("vllm-")
    assert engine.boot() == boot


def test_a_loaded_adapter_is_listed_with_its_path_and_the_base_is_not(engine: VllmEngine, server: Server) -> None:
    engine.load(name=NAMES[0], path=server.adapter)
    listed = {adapter.name: adapter.root for adapter in engine.list_loaded()}
    assert listed[NAMES[0]] == str(server.adapter)
    assert server.base not in listed


def test_loading_again_from_the_same_folder_is_success(engine: VllmEngine, server: Server) -> None:
    engine.load(name=NAMES[0], path=server.adapter)
    engine.load(name=NAMES[0], path=server.adapter)


def test_loading_the_name_from_another_folder_is_refused(engine: VllmEngine, server: Server, tmp_path: Path) -> None:
    engine.load(name=NAMES[0], path=server.adapter)
    with pytest.raises(EngineRefusedError, match="from another folder"):
        engine.load(name=NAMES[0], path=server.variant(tmp_path / "other"))


def test_unloading_makes_the_name_unknown_and_twice_is_success(engine: VllmEngine, server: Server) -> None:
    engine.load(name=NAMES[0], path=server.adapter)
    engine.unload(NAMES[0])
    engine.unload(NAMES[0])
    assert NAMES[0] not in {adapter.name for adapter in engine.list_loaded()}
    with pytest.raises(EngineAwayError, match="does not exist"):
        engine.read_prompt(model=NAMES[0], prompt=PROBE_TEXT)


def test_a_missing_folder_is_refused(engine: VllmEngine, tmp_path: Path) -> None:
    with pytest.raises(EngineRefusedError, match="No adapter found"):
        engine.load(name=NAMES[0], path=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "reason"), [({"r": 512}, "greater than max_lora_rank"), ({"use_dora": True}, "DoRA")]
)
def test_an_adapter_that_it_cannot_serve_is_refused_with_its_reason(
    engine: VllmEngine, server: Server, tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    with pytest.raises(EngineRefusedError, match=reason) as caught:
        engine.load(name=NAMES[0], path=server.variant(tmp_path / "bad", **change))
    assert caught.value.error_class == "refused"


def test_a_truncated_file_is_refused(engine: VllmEngine, server: Server, tmp_path: Path) -> None:
    folder = server.variant(tmp_path / "torn")
    (folder / "adapter_model.safetensors").write_bytes(b"\x10")
    with pytest.raises(EngineRefusedError, match="deserializing header"):
        engine.load(name=NAMES[0], path=folder)


def test_readings_are_numbers_repeat_themselves_and_name_their_model(engine: VllmEngine, server: Server) -> None:
    engine.load(name=NAMES[0], path=server.adapter)
    for model in (server.base, NAMES[0]):
        first, second = (engine.read_prompt(model=model, prompt=PROBE_TEXT) for _ in range(2))
        assert first.model == model
        assert len(first.log_probabilities) > 10
        assert all(map(math.isfinite, first.log_probabilities))
        assert first.log_probabilities == pytest.approx(second.log_probabilities, abs=0.005)


def test_a_good_adapter_passes_the_probe(engine: VllmEngine, server: Server) -> None:
    engine.load(name=NAMES[0], path=server.adapter)
    prober = Prober(engine, base_model=server.base)
    assert prober.probe(NAMES[0], boot_id=engine.boot().id) > 0.05


def test_an_adapter_without_effect_fails_the_probe(engine: VllmEngine, server: Server, tmp_path: Path) -> None:
    folder = server.variant(tmp_path / "zero")
    weights = load_file(folder / "adapter_model.safetensors")
    save_file(
        {name: 0 * tensor if "lora_B" in name else tensor for name, tensor in weights.items()},
        folder / "adapter_model.safetensors",
    )
    engine.load(name=NAMES[1], path=folder)
    with pytest.raises(NoEffectError, match="reads like the base"):
        Prober(engine, base_model=server.base, sleep=lambda _: None).probe(NAMES[1], boot_id=engine.boot().id)
