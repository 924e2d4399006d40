import resource
from typing import Any

import numpy as np
import pytest

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
    assert upload.check().verdict == "accept"


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
