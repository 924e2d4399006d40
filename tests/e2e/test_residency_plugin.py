"""A real vLLM with our plugin: where its adapters are, a real unload, and who may ask."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from deploy.demo.materials import DEFAULT_CACHE, ensure_adapters, ensure_base_model
from deploy.demo.voices import WARM
from deploy.embedded.ports import free_port
from deploy.engine.residency import install_plugin
from deploy.engine.vllm import VllmServer, VllmSpec
from workers.node.engines.vllm import VllmEngine

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / DEFAULT_CACHE
TOKEN = "a token for this test"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    folder = tmp_path_factory.mktemp("vllm")
    spec = VllmSpec(
        python=Path(os.environ.get("LOREKEEPER_VLLM_PYTHON", ROOT / ".venv-vllm" / "bin" / "python")).absolute(),
        model=ensure_base_model(CACHE)[0].resolve(),
        port=free_port(),
        served_name="base",
        gpu_slots=2,
        cpu_slots=4,
        plugin=install_plugin(folder / "plugin"),
        plugin_token=TOKEN,
    )
    with VllmServer(folder / "engine", spec) as running:
        yield running


def test_residency_is_read_back_and_an_unload_frees_memory(server: VllmServer) -> None:
    (adapter,) = ensure_adapters(CACHE, (WARM,))[0].values()
    with closing(VllmEngine(server.url, residency_token=TOKEN)) as engine:
        for number in range(6):
            engine.load(name=f"lk-{number}", path=adapter.absolute())
        assert engine.tiers() == {"lk-2": "cpu", "lk-3": "cpu", "lk-4": "gpu", "lk-5": "gpu"}
        engine.read_prompt(model="lk-3", prompt="Hello there")
        assert engine.tiers() == {"lk-2": "cpu", "lk-3": "gpu", "lk-4": "cpu", "lk-5": "gpu"}
        engine.read_prompt(model="lk-0", prompt="Hello there")
        assert engine.tiers() == {"lk-0": "gpu", "lk-3": "gpu", "lk-4": "cpu", "lk-5": "cpu"}
        for name in ("lk-0", "lk-1", "lk-never"):
            engine.unload(name)
        assert engine.tiers() == {"lk-3": "gpu", "lk-4": "cpu", "lk-5": "cpu"}
        assert {each.name for each in engine.list_loaded()} == {"lk-2", "lk-3", "lk-4", "lk-5"}
        assert engine.in_use() == frozenset()


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer other"}, {"Authorization": TOKEN[:-1]}])
def test_who_has_not_the_token_is_told_nothing(server: VllmServer, header: dict[str, str]) -> None:
    for method, path in (("GET", "adapters"), ("POST", "unload")):
        answer = httpx.request(method, f"{server.url}/lorekeeper/{path}", headers=header, json={"lora_name": "lk-3"})
        assert answer.status_code == 403
