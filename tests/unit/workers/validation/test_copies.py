from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from registry.base_models.description import TensorInfo
from tests.unit.workers.validation.adapters import BASE, HIDDEN, ROOT, Tensors, Upload, bfloat16, pairs, safetensors
from workers.validation import Report

VOCAB = 64
EMBEDDING = "model.embed_tokens.weight"
NARROW = replace(BASE, vocab_size=VOCAB, tensors={**BASE.tensors, EMBEDDING: TensorInfo("BF16", (VOCAB, HIDDEN))})
PATTERNS = bfloat16(np.random.default_rng(1).standard_normal((VOCAB, HIDDEN), dtype=np.float32))
VALUES = np.left_shift(PATTERNS, 16, dtype=np.uint32).view(np.float32)


@pytest.fixture(scope="module")
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    (folder / "model-00001-of-00002.safetensors").write_bytes(safetensors({"lm_head.other": np.ones(3, np.float32)}))
    (folder / "model-00002-of-00002.safetensors").write_bytes(safetensors({EMBEDDING: PATTERNS}))
    return folder


def embedded(copy: np.ndarray, module: str = "model.embed_tokens") -> Tensors:
    """An adapter on the embedding with what PEFT saves beside it."""
    halves = {
        f"{ROOT}embed_tokens.lora_embedding_A": np.full((8, VOCAB), 0.02, np.float32),
        f"{ROOT}embed_tokens.lora_embedding_B": np.full((HIDDEN, 8), 0.02, np.float32),
    }
    return {**pairs(), **halves, f"base_model.model.{module}.base_layer.weight": copy}


def checked(upload: Upload, tensors: Tensors, base_folder: Path | None) -> Report:
    upload.weights(tensors).config(target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "embed_tokens"])
    return upload.check(base=NARROW, base_folder=base_folder)


@pytest.mark.parametrize("copy", [PATTERNS, VALUES, VALUES.astype(np.float16)], ids=["bf16", "f32", "f16"])
def test_a_copy_of_the_bases_own_embedding_is_harmless(upload: Upload, base_folder: Path, copy: np.ndarray) -> None:
    report = checked(upload, embedded(copy), base_folder)
    assert report.verdict == "warn", report.reasons
    assert any("copy of the base's own embedding" in reason for reason in report.reasons)
    assert "vllm" in report.facts.engines


def test_the_copy_of_a_tied_head_is_compared_with_the_embedding(upload: Upload, base_folder: Path) -> None:
    assert checked(upload, embedded(VALUES, "lm_head"), base_folder).verdict == "warn"


def test_an_embedding_that_was_changed_is_refused(upload: Upload, base_folder: Path) -> None:
    changed = VALUES.copy()
    changed[-1, -1] *= np.float32(1.01)
    report = checked(upload, embedded(changed), base_folder)
    assert report.verdict == "reject"
    assert "embedding" in report.reasons[0]


def test_without_the_bases_weights_a_copy_counts_as_changed(upload: Upload, tmp_path: Path) -> None:
    assert checked(upload, embedded(VALUES), None).verdict == "reject"
    assert checked(upload, embedded(VALUES), tmp_path).verdict == "reject"


def test_of_a_larger_vocabulary_it_is_no_copy(upload: Upload, base_folder: Path) -> None:
    assert checked(upload, embedded(np.vstack([VALUES, VALUES[:2]])), base_folder).verdict == "reject"
