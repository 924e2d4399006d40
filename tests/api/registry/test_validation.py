"""What a bad adapter is told, and that nothing of it stays behind."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from registry.models import Version
from registry.services.validation import purge_version
from registry.states import VersionState
from tests.factories.adapters import VOCABULARY, adapter_config, adapter_files, adapter_tensors
from workers.jobs.validation import validate_version

pytestmark = pytest.mark.django_db(transaction=True)
Push = Callable[..., Version]


def with_tensors(change: Callable[[dict[str, Any]], None], **config: Any) -> dict[str, bytes]:
    tensors = adapter_tensors()
    change(tensors)
    return {**adapter_files(**config), "adapter_model.safetensors": save(tensors)}


def nan(tensors: dict[str, Any]) -> None:
    next(iter(tensors.values()))[0, 0] = np.nan


def wrong_base(tensors: dict[str, Any]) -> None:
    for name, tensor in list(tensors.items()):
        if name.endswith("lora_A.weight"):
            tensors[name] = np.concatenate([tensor, tensor], axis=1)


def missing_b(tensors: dict[str, Any]) -> None:
    del tensors[next(name for name in tensors if name.endswith("lora_B.weight"))]


def other_vocabulary(tensors: dict[str, Any]) -> None:
    tensors["base_model.model.lm_head.weight"] = np.zeros((VOCABULARY + 8, 16), dtype=np.float32)


def overlapping_weights() -> bytes:
    span = {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}
    header = json.dumps(dict.fromkeys(list(adapter_tensors())[:2], span)).encode()
    return len(header).to_bytes(8, "little") + header + bytes(64)


CASES = {
    "NaN weights": (with_tensors(nan), "finite|NaN"),
    "another base's shapes": (with_tensors(wrong_base), "16|32|shape"),
    "half a pair": (with_tensors(missing_b), "lora_B|pair"),
    "another vocabulary": (with_tensors(other_vocabulary), "lm_head|vocabulary"),
    "modules to save": (adapter_files(modules_to_save=["lm_head"]), "modules_to_save"),
    "DoRA": (adapter_files(use_dora=True), "(?i)dora"),
    "bias": (adapter_files(bias="all"), "bias"),
    "rank above the limit": (adapter_files(rank=32), "rank"),
    "config is a list": ({**adapter_files(), "adapter_config.json": b"[]"}, "object"),
    "config nested without end": ({**adapter_files(), "adapter_config.json": b"[" * 900_000}, "nest|deep"),
    "header larger than the file": (
        {**adapter_files(), "adapter_model.safetensors": (100 * 2**20).to_bytes(8, "little") + b"{}"},
        "header",
    ),
    "overlapping offsets": (
        {
            **adapter_files(),
            "adapter_model.safetensors": overlapping_weights(),
        },
        "overlap|offset|contiguous",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_adapter_is_rejected_with_its_reason(push: Push, case: str) -> None:
    files, reason = CASES[case]
    version = push(files)
    assert version.state == VersionState.REJECTED
    assert re.search(reason, version.state_message), version.state_message


def test_a_good_adapter_becomes_a_candidate_with_its_true_rank(push: Push) -> None:
    version = push(adapter_files(rank=8))
    assert version.state == VersionState.CANDIDATE, version.state_message
    assert version.rank == 8
    assert list(version.target_modules) == ["q_proj", "v_proj"]


def test_the_bytes_of_a_rejected_version_leave_the_store(push: Push, sent: list[Any], tmp_path: Path) -> None:
    version = push(CASES["NaN weights"][0])
    assert sent[-1] == ("workers.tasks.purge_version", {"version_id": str(version.pk)})
    purge_version(version_id=version.pk)
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


def test_a_purge_keeps_the_bytes_that_a_good_version_shares(push: Push, store: Any) -> None:
    bad = push({**adapter_files(), "adapter_config.json": json.dumps({**adapter_config(), "bias": "all"}).encode()})
    good = push(adapter_files())
    purge_version(version_id=bad.pk)
    weights = good.files.get(path="adapter_model.safetensors").artifact
    assert weights.stored_at is not None
    assert store.stat(f"artifacts/acme/{weights.sha256[:2]}/{weights.sha256}").size == weights.size


def test_validating_twice_is_harmless(push: Push) -> None:
    version = push()
    validate_version(version_id=version.pk)
    assert version.reports.count() == 1
