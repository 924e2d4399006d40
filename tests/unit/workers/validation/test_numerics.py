import hashlib
import resource
import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.base_models.safetensors_header import Header, TensorSpan
from tests.unit.workers.validation.adapters import Upload, base, bfloat16, key, pairs
from workers.validation import Report, Verdict
from workers.validation.weights import CHUNK_BYTES, FORMATS, scan

PLACE = key(1, "self_attn.o_proj", "B")


def codes(report: Report, verdict: Verdict = Verdict.FAIL) -> set[str]:
    return {check.code for check in report.checks if check.name == "numerics" and check.verdict is verdict}


def spoilt(value: float, dtype: str) -> dict[str, Any]:
    tensors = pairs()
    tensors[PLACE][5, 2] = value
    if dtype == "bfloat16":
        return {name: bfloat16(array) for name, array in tensors.items()}
    return {name: array.astype(dtype) for name, array in tensors.items()}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("value", "code"), [(np.nan, "nan"), (-np.nan, "nan"), (np.inf, "inf"), (-np.inf, "inf")])
def test_one_value_that_is_not_finite_is_found(upload: Upload, value: float, code: str, dtype: str) -> None:
    report = upload.weights(spoilt(value, dtype)).config().check()
    assert codes(report) == {code}
    assert PLACE in report.reasons[0]
    assert "finite" in report.reasons[0]


@pytest.mark.parametrize(("value", "found"), [(3.4e38, {"bf16_range"}), (3.39e38, {"overflow"}), (1.0, set())])
def test_a_value_that_rounds_to_infinity_in_bfloat16_is_refused(upload: Upload, value: float, found: set[str]) -> None:
    assert codes(upload.weights(spoilt(value, "float32")).config().check()) == found


def test_the_boundary_of_bfloat16_is_exact() -> None:
    layout = FORMATS["F32"]
    assert layout.value(layout.bf16_overflow) == (2 - 2**-8) * 2.0**127
    assert FORMATS["F64"].value(FORMATS["F64"].bf16_overflow) == (2 - 2**-8) * 2.0**127
    assert layout.value(layout.f16_overflow) == 65520
    assert FORMATS["F64"].value(FORMATS["F64"].f16_overflow) == 65520
    assert FORMATS["BF16"].value(FORMATS["BF16"].f16_overflow) == 65536
    assert FORMATS["F16"].value(0x7BFF) == 65504


def test_a_value_beyond_half_precision_is_refused_for_a_base_in_half_precision(upload: Upload) -> None:
    upload.weights(spoilt(70_000.0, "float32")).config()
    assert codes(upload.check(base=base(dtype="F16"))) == {"f16_range"}
    assert codes(upload.check()) == set()


@pytest.mark.parametrize("half", ["lora_A", "lora_B"])
def test_an_adapter_of_zeros_is_warned_of(upload: Upload, half: str) -> None:
    tensors = {name: np.zeros_like(array) if half in name else array for name, array in pairs().items()}
    report = upload.weights(tensors).config().check()
    assert report.verdict == "warn"
    assert "no effect" in report.reasons[0]


def test_negative_zeros_have_no_effect_either(upload: Upload) -> None:
    tensors = {name: array * np.float32(-0.0) if "lora_B" in name else array for name, array in pairs().items()}
    assert codes(upload.weights(tensors).config().check(), Verdict.WARN) == {"no_effect"}


def test_a_module_of_zeros_among_others_is_named(upload: Upload) -> None:
    tensors = {**pairs(), PLACE: np.zeros((576, 8), np.float32)}
    report = upload.weights(tensors).config().check()
    assert codes(report, Verdict.WARN) == {"partly_no_effect"}
    assert "model.layers.1.self_attn.o_proj" in report.reasons[0]


def test_one_module_that_dwarfs_the_others_is_named_with_the_factor(upload: Upload) -> None:
    tensors = pairs(layers=4)
    tensors[key(2, "self_attn.v_proj", "B")] *= np.float32(500)
    report = upload.weights(tensors).config().check()
    assert codes(report, Verdict.WARN) == {"outlier"}
    assert "model.layers.2.self_attn.v_proj is an outlier: its norm is 4" in report.reasons[0]


def test_updates_larger_than_any_base_s_weights_are_warned_of(upload: Upload) -> None:
    tensors = {name: array * np.float32(500) for name, array in pairs().items()}
    assert codes(upload.weights(tensors).config().check(), Verdict.WARN) == {"strong"}


def test_modules_of_usual_differences_are_no_outliers(upload: Upload) -> None:
    tensors = {
        name: array * np.float32(10 if ".0." in name and "lora_B" in name else 1)
        for name, array in pairs(layers=4).items()
    }
    assert upload.weights(tensors).config().check().verdict == "accept"


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "bfloat16"])
def test_the_norm_and_the_peak_are_those_of_the_values(tmp_path: Any, dtype: str) -> None:
    values = np.array([-3.0, 0.5, 2.0, -0.25] * 5000, dtype=np.float32)
    array = bfloat16(values) if dtype == "bfloat16" else values.astype(dtype)
    path = tmp_path / "weights"
    path.write_bytes(array.tobytes())
    name = {"float32": "F32", "float16": "F16", "float64": "F64", "bfloat16": "BF16"}[dtype]
    header = Header((TensorSpan("t", name, (values.size,), 0, array.nbytes),), data_start=0)
    with path.open("rb") as file:
        peak = scan(file.fileno(), array.nbytes, header).peaks["t"]
    assert FORMATS[name].value(peak.pattern) == 3.0
    assert peak.norm == pytest.approx(float(np.linalg.norm(values)))


def test_the_norm_of_a_large_matrix_is_estimated_from_all_its_rows_and_columns(tmp_path: Any) -> None:
    values = np.random.default_rng(1).standard_normal((16384, 16)).astype(np.float32)
    values[:, 5] *= 30
    path = tmp_path / "weights"
    path.write_bytes(values.tobytes())
    header = Header((TensorSpan("t", "F32", values.shape, 0, values.nbytes),), data_start=0)
    with path.open("rb") as file:
        found = scan(file.fileno(), values.nbytes, header).peaks["t"]
    assert found.norm == pytest.approx(float(np.linalg.norm(values)), rel=0.05)


def test_one_value_that_dwarfs_a_large_matrix_is_seen_wherever_it_lies(upload: Upload) -> None:
    tensors = pairs(16, ("self_attn.q_proj", "mlp.up_proj"), layers=3)
    tensors[key(1, "mlp.up_proj", "B")][77, 2] = 1e5
    report = upload.weights(tensors).config(r=16, target_modules=["q_proj", "up_proj"]).check()
    assert codes(report, Verdict.WARN) == {"outlier"}


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(0, 30), st.integers(1, 6))
def test_tensors_cut_into_blocks_anyhow_give_the_same_sums(sizes: list[int], lead: int, block: int) -> None:
    arrays = [np.arange(1, size + 1, dtype=np.float64) * (-1) ** index for index, size in enumerate(sizes)]
    content = bytes(lead) + b"".join(array.tobytes() for array in arrays)
    ends = np.cumsum([0, *(array.nbytes for array in arrays)]).tolist()
    spans = tuple(TensorSpan(f"t{i}", "F64", (size,), ends[i], ends[i + 1]) for i, size in enumerate(sizes))
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr("workers.validation.weights.CHUNK_BYTES", 16 * block)
        file.write(content)
        file.flush()
        found = scan(file.fileno(), len(content), Header(spans, data_start=lead))
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    for span, array in zip(spans, arrays, strict=True):
        assert found.peaks[span.name].norm == pytest.approx(float(np.linalg.norm(array)))
        assert FORMATS["F64"].value(found.peaks[span.name].pattern) == (np.abs(array).max() if array.size else 0)


def test_the_way_to_memory_and_to_a_device_is_timed(tmp_path: Any) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(1 << 20))
    device = CountingDevice()
    with path.open("rb") as file:
        header = Header((TensorSpan("t", "F32", (1 << 18,), 0, 1 << 20),), data_start=0)
        load = scan(file.fileno(), 1 << 20, header, device=device).load
    assert device.copied == 1 << 20
    assert (load.device, load.disk_ms > 0) == ("counting:0", True)
    assert load.device_ms is not None


class CountingDevice:
    name = "counting:0"
    copied = 0

    def copy(self, block: memoryview) -> None:
        self.copied += len(block)


def test_values_of_all_float_types_across_chunks_are_seen(tmp_path: Any) -> None:
    elements = CHUNK_BYTES // 8 * 2 + 3
    array = np.ones(elements, dtype=np.float64)
    array[-1], array[0] = np.nan, np.inf
    path = tmp_path / "weights"
    path.write_bytes(b"12345678" + array.tobytes())
    span = TensorSpan("t", "F64", (elements,), 0, array.nbytes)
    with path.open("rb") as file:
        found = scan(file.fileno(), path.stat().st_size, Header((span,), data_start=8))
    assert (found.peaks["t"].nans, found.peaks["t"].infinities) == (1, 1)


def test_memory_does_not_grow_with_the_file(tmp_path: Any) -> None:
    size = 256 << 20
    path = tmp_path / "weights"
    with path.open("wb") as file:
        file.truncate(size)
    span = TensorSpan("t", "F32", (size // 4,), 0, size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with path.open("rb") as file:
        assert scan(file.fileno(), size, Header((span,), data_start=0)).peaks["t"].pattern == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_a_file_that_shrinks_meanwhile_is_an_error_of_the_machine(tmp_path: Any) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(100))
    with path.open("rb") as file, pytest.raises(OSError, match="shorter"):
        scan(file.fileno(), 200, None)


def test_updates_that_16_bit_types_round_away_are_warned_of(upload: Upload) -> None:
    tensors = {name: array * np.float32(1e-9 if "lora_B" in name else 1) for name, array in pairs().items()}
    report = upload.weights(tensors).config().check()
    assert report.verdict == "warn"
    assert "near zero" in report.reasons[0]
