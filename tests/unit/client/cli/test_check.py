import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from safetensors.numpy import save_file

from client.cli.main import cli
from tests.unit.workers.validation.adapters import Upload, settings

WIDTH, VOCAB = 16, 32


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of one layer; its weights are never read, only their header."""
    folder = tmp_path_factory.mktemp("models") / "SmolLM2-135M-Instruct"
    folder.mkdir()
    config = {"architectures": ["LlamaForCausalLM"], "vocab_size": VOCAB, "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {"model.embed_tokens.weight": np.zeros((VOCAB, WIDTH), np.float32)}
    tensors["model.layers.0.self_attn.q_proj.weight"] = np.zeros((WIDTH, WIDTH), np.float32)
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture
def adapter(tmp_path: Path) -> Upload:
    return Upload(tmp_path / "adapter").weights(weights()).config(settings(r=4, target_modules=["q_proj"]))


def weights(value: float = 0.05) -> dict[str, Any]:
    prefix = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
    return {f"{prefix}{half}.weight": np.full(shape, value, np.float32) for half, shape in SHAPES.items()}


SHAPES = {"A": (4, WIDTH), "B": (WIDTH, 4)}


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, ["check", *map(str, args)])


def document(*args: object) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(run(*args, "--json").output)
    return read


def test_a_sound_adapter_is_accepted_with_exit_code_zero(adapter: Upload, base: Path) -> None:
    result = run(adapter.folder, "--base", base, "--max-rank", 8)
    assert result.exit_code == 0, result.output
    assert "validation: accept" in result.output
    assert "vLLM" in result.output


def test_a_warning_ends_with_one(adapter: Upload, base: Path) -> None:
    adapter.weights(weights(0.0))
    assert run(adapter.folder, "--base", base).exit_code == 1


def test_a_refusal_ends_with_two_and_names_the_cause(adapter: Upload, base: Path) -> None:
    adapter.weights(weights(float("nan")))
    result = run(adapter.folder, "--base", base)
    assert result.exit_code == 2
    assert "NaN" in result.output


def test_the_largest_rank_can_be_given(adapter: Upload, base: Path) -> None:
    assert run(adapter.folder, "--base", base, "--max-rank", 2).exit_code == 2


def test_json_has_the_verdict_and_every_check_with_evidence(adapter: Upload, base: Path) -> None:
    found = document(adapter.folder, "--base", base, "--max-rank", 8)
    assert found["verdict"] == "accept"
    assert [check["name"] for check in found["checks"]] == [
        "files", "companions", "structure", "config", "compatibility", "numerics", "engines", "cost",
    ]  # fmt: skip
    assert all(check.keys() >= {"name", "verdict", "message", "evidence"} for check in found["checks"])
    evidence = {check["name"]: check["evidence"] for check in found["checks"]}
    assert evidence["engines"]["vllm"]["serves"] is True
    assert evidence["cost"]["load"]["disk_ms"] >= 0
    assert evidence["cost"]["slot_bytes"]["vllm"] > 0


def test_a_name_of_the_base_can_be_given(adapter: Upload, base: Path) -> None:
    assert run(adapter.folder, "--base", base, "--base-name", "Qwen/Qwen2.5-0.5B").exit_code == 2
    assert run(adapter.folder, "--base", base, "--base-name", "HuggingFaceTB/SmolLM2-135M-Instruct").exit_code == 0


def test_the_folder_s_name_tells_a_sibling_model_apart(adapter: Upload, base: Path) -> None:
    adapter.config(settings(r=4, target_modules=["q_proj"], base_model_name_or_path="x/SmolLM-135M-Instruct"))
    result = run(adapter.folder, "--base", base)
    assert result.exit_code == 2
    assert "another model" in result.output


def test_the_hub_s_cache_is_named_by_its_repository(adapter: Upload, base: Path, tmp_path: Path) -> None:
    cached = tmp_path / "models--x--SmolLM-135M-Instruct" / "snapshots" / "0123abcd"
    cached.parent.mkdir(parents=True)
    cached.symlink_to(base)
    assert run(adapter.folder, "--base", base).exit_code == 0
    copy = tmp_path / "models--x--SmolLM-135M" / "snapshots" / "4567"
    copy.mkdir(parents=True)
    for file in base.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert run(adapter.folder, "--base", copy).exit_code == 2


@pytest.mark.parametrize("args", [[], ["--base"], ["--max-rank", "0"], ["--unknown"]])
def test_a_wrong_command_line_is_no_verdict(adapter: Upload, args: list[str]) -> None:
    assert run(adapter.folder, *args).exit_code == 3


def test_a_folder_that_is_no_model_is_no_verdict(adapter: Upload, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run(adapter.folder, "--base", tmp_path / "empty", "--json")
    assert result.exit_code == 3
    assert json.loads(result.output)["error"]["path"] == "config.json"


def test_a_file_that_cannot_be_read_is_no_verdict(adapter: Upload, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise OSError(5, "Input/output error", "adapter_model.safetensors")

    monkeypatch.setattr("workers.validation.subject.scan", fail)
    result = run(adapter.folder, "--base", base)
    assert result.exit_code == 3
    assert "adapter_model.safetensors: Input/output error." in result.output
