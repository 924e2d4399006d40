"""Whatever the tensors of an upload are called, its validation comes to an end."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from registry.models import Version
from registry.states import VersionState
from tests.factories.adapters import adapter_files

pytestmark = pytest.mark.django_db(transaction=True)
Push = Callable[..., Version]

ROOT = "base_model.model.model.layers.0.self_attn"
NAMES = {
    "endless": f"{ROOT}.{'q' * 400}",
    "NUL": f"{ROOT}.q\x00proj",
    "half a character": f"{ROOT}.q\ud800proj",
    "turned around": f"{ROOT}.\u202eq_proj",
    "a line break": f"{ROOT}.q\nproj",
}


def weights(module: str, *, rank: int = 4) -> bytes:
    header = json.dumps(
        {
            f"{module}.lora_A.weight": {"dtype": "F32", "shape": [rank, 0], "data_offsets": [0, 0]},
            f"{module}.lora_B.weight": {"dtype": "F32", "shape": [0, rank], "data_offsets": [0, 0]},
        }
    ).encode()
    return len(header).to_bytes(8, "little") + header


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_strange_module_name_is_refused_and_not_validated_for_ever(push: Push, name: str) -> None:
    version = push({**adapter_files(), "adapter_model.safetensors": weights(name)})
    assert version.state == VersionState.REJECTED


@pytest.mark.parametrize("rank", [2**31, 2**40, 2**53, 2**62])
def test_a_rank_beyond_all_bounds_is_refused_and_not_validated_for_ever(push: Push, rank: int) -> None:
    version = push({**adapter_files(), "adapter_model.safetensors": weights(f"{ROOT}.q_proj", rank=rank)})
    assert version.state == VersionState.REJECTED


CONFIGS: dict[str, dict[str, Any]] = {
    "r": {"r": 2**70},
    "lora_alpha": {"lora_alpha": 1e308},
    "base": {"base_model_name_or_path": "x\x00y"},
    "base half": {"base_model_name_or_path": "x\ud800y"},
    "targets": {"target_modules": ["q\x00", "\ud800", "v" * 500]},
    "peft_type": {"peft_type": "\x00"},
    "task": {"task_type": {"a": ["\x00"]}},
    "strange key": {"\x00\ud800": 1},
    "pattern": {"rank_pattern": {"\x00": 2**80}, "alpha_pattern": {"\ud800": 1e300}},
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_strange_config_is_judged_and_not_validated_for_ever(push: Push, config: dict[str, Any]) -> None:
    version = push(adapter_files(**config))
    assert version.state in (VersionState.REJECTED, VersionState.CANDIDATE)
