from typing import Any

import pytest

from tests.unit.workers.validation.adapters import DIMENSIONS, HIDDEN, LAYERS, VOCAB, Upload, pairs
from workers.validation import Check, Limits
from workers.validation.device import TorchDevice
from workers.validation.engines.slots import kernel_rank

LAYER = sum(map(sum, DIMENSIONS.values()))
QKV = sum(sum(DIMENSIONS[f"self_attn.{name}_proj"]) for name in "qkv")


def cost(upload: Upload, **options: Any) -> Check:
    return next(check for check in upload.check(**options).checks if check.name == "cost")


def test_the_bytes_are_those_of_the_files_that_are_kept(good: Upload) -> None:
    kept = sum(path.stat().st_size for path in good.folder.iterdir())
    good.file("optimizer.pt", b"x" * 5000)
    evidence = cost(good).evidence
    assert evidence["bytes"] == kept
    assert evidence["weights_bytes"] == (good.folder / "adapter_model.safetensors").stat().st_size


def test_a_slot_is_counted_as_each_engine_keeps_it(upload: Upload) -> None:
    upload.weights(pairs(4, ("self_attn.q_proj",), layers=LAYERS)).config(r=4, target_modules=["q_proj"])
    slots = upload.check(limits=Limits(max_rank=12)).facts.slot_bytes
    # The embedding and the head that is tied to it have slots of their own on vLLM.
    assert slots["vllm"] == 2 * 16 * (LAYERS * LAYER + 2 * (VOCAB + HIDDEN))
    assert slots["sglang"] == 2 * 12 * LAYERS * QKV
    assert slots["tgi"] == slots["lorax"] == 2 * 8 * LAYERS * 2 * HIDDEN


@pytest.mark.parametrize(("rank", "padded"), [(1, 8), (8, 8), (9, 16), (16, 16), (17, 32), (64, 64)])
def test_the_kernels_of_tgi_and_lorax_pad_ranks(rank: int, padded: int) -> None:
    assert kernel_rank(rank) == padded


def test_the_time_to_load_is_measured_and_not_part_of_the_evidence(good: Upload) -> None:
    load = cost(good, device=TorchDevice("cpu")).measured["load"]
    assert isinstance(load, dict)
    assert load["device"] == "cpu"
    assert load["disk_ms"] > 0
    assert load["device_ms"] > 0
    assert cost(good).measured["load"] == {"device": None, "device_ms": None, "disk_ms": pytest.approx(500, abs=500)}


def test_a_damaged_file_has_no_cost(upload: Upload) -> None:
    assert cost(upload.weights(b"x" * 20).config()).code == "not_checked"
