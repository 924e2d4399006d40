from pathlib import Path

import pytest

from deploy.engine.vllm import VllmSpec


@pytest.fixture
def spec() -> VllmSpec:
    return VllmSpec(python=Path("/venv/bin/python"), model=Path("/models/m"), port=18000, served_name="m", gpu_slots=3)


def test_the_module_is_started_and_not_the_script(spec: VllmSpec) -> None:
    assert spec.command()[:3] == ["/venv/bin/python", "-m", "vllm.entrypoints.openai.api_server"]


def test_the_slots_and_ranks_are_passed_on(spec: VllmSpec) -> None:
    argv = spec.command()
    flags = {flag: argv[argv.index(flag) + 1] for flag in ("--max-loras", "--max-cpu-loras", "--max-lora-rank")}
    assert flags == {"--max-loras": "3", "--max-cpu-loras": "4", "--max-lora-rank": "16"}
    assert "--enable-lora" in argv


def test_the_engine_listens_on_the_loopback_interface_only(spec: VllmSpec) -> None:
    assert spec.command()[spec.command().index("--host") + 1] == "127.0.0.1"
    assert spec.url == "http://127.0.0.1:18000"


def test_the_engine_gets_none_of_our_secrets(spec: VllmSpec) -> None:
    environment = spec.environment({"PATH": "/bin", "LOREKEEPER_SECRET_KEY": "s", "LOREKEEPER_DB_PASSWORD": "p"})
    assert environment["PATH"] == "/bin"
    assert not [name for name in environment if name.startswith("LOREKEEPER_")]


def test_adapters_can_be_loaded_at_run_time_and_nothing_is_downloaded(spec: VllmSpec) -> None:
    environment = spec.environment({})
    assert environment["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "True"
    assert environment["HF_HUB_OFFLINE"] == "1"


def test_no_two_requests_share_a_batch_of_the_cpu_build(tmp_path: Path) -> None:
    spec = VllmSpec(python=tmp_path / "python", model=tmp_path / "model", port=8000, served_name="base")
    argv = spec.command()
    assert argv[argv.index("--max-num-seqs") + 1] == "1"


def test_the_cpu_build_computes_in_one_process_and_one_thread_unless_told_how_many(spec: VllmSpec) -> None:
    argv = spec.command()
    assert argv[argv.index("--distributed-executor-backend") + 1] == "uni"
    assert spec.environment({})["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert spec.environment({})["OMP_NUM_THREADS"] == "1"
    assert spec.environment({"OMP_NUM_THREADS": "8"})["OMP_NUM_THREADS"] == "8"
