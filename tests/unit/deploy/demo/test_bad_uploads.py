import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from deploy.demo.bad_uploads import BAD_UPLOADS, BadUpload, make_bad_upload
from deploy.demo.uploading import names_its_reason

PICKLE, NAN, WRONG_BASE = BAD_UPLOADS
KEY = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    folder = tmp_path / "good"
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"r": 2, "target_modules": ["q_proj", "v_proj"]}))
    tensors = {KEY.format("A"): np.ones((2, 4), np.float32), KEY.format("B"): np.ones((4, 2), np.float32)}
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


def test_the_pickle_has_no_safetensors_beside_it(good: Path, tmp_path: Path) -> None:
    folder = make_bad_upload(PICKLE, good=good, folder=tmp_path / "bad")
    assert sorted(path.name for path in folder.iterdir()) == ["adapter_config.json", "adapter_model.bin"]


def test_exactly_one_value_becomes_nan_and_the_rest_stays(good: Path, tmp_path: Path) -> None:
    spoiled = load_file(make_bad_upload(NAN, good=good, folder=tmp_path / "bad") / "adapter_model.safetensors")
    original = load_file(good / "adapter_model.safetensors")
    assert spoiled.keys() == original.keys()
    assert sum(int(np.isnan(tensor).sum()) for tensor in spoiled.values()) == 1
    assert all(np.allclose(spoiled[name], original[name], equal_nan=False) for name in [KEY.format("A")])


def test_the_wrong_base_has_the_same_names_and_rank_but_another_width(good: Path, tmp_path: Path) -> None:
    other = load_file(make_bad_upload(WRONG_BASE, good=good, folder=tmp_path / "bad") / "adapter_model.safetensors")
    assert other[KEY.format("A")].shape == (2, 960)
    assert other[KEY.format("B")].shape == (960, 2)
    assert other[KEY.format("B").replace("q_proj", "v_proj")].shape == (320, 2)
    assert all(np.isfinite(tensor).all() for tensor in other.values())


def test_an_upload_is_made_anew_each_time(good: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "left-over").write_text("x")
    make_bad_upload(PICKLE, good=good, folder=folder)
    assert not (folder / "left-over").exists()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (PICKLE, "adapter_model.bin may hold code: only safetensors are taken."),
        (NAN, "1 value of lora_B is not finite."),
        (WRONG_BASE, "lora_A has shape [8, 960], the base needs [8, 576]."),
    ],
)
def test_a_refusal_must_be_about_what_is_wrong(bad: BadUpload, reason: str) -> None:
    assert names_its_reason(bad, reason)
    assert not names_its_reason(bad, "The token is unknown.")
