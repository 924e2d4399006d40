import json
import struct
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.workers.validation.adapters import Upload, key, pairs, safetensors, with_header
from workers.validation import Report, Verdict

SPAN = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}


def codes(report: Report) -> set[str]:
    found = (check for check in report.checks if check.name == "structure" and check.verdict is Verdict.FAIL)
    return {check.code for check in found}


def header(content: Any, data: int = 16) -> bytes:
    return with_header(json.dumps(content).encode(), bytes(data))


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "truncated"),
        (b"\x01\x02", "truncated"),
        (with_header(b"{}", length=1 << 40), "header_too_long"),
        (with_header(b"{}", length=100_000_000) + bytes(1000), "header_too_long"),
        (with_header(b"{}", length=3), "truncated"),
        (with_header(b"[]"), "header_json"),
        (with_header(b"{"), "header_json"),
        (with_header(b'{"a": NaN}'), "header_json"),
        (with_header(b"{" + b'"a":{' * 50_000), "header_json"),
        (with_header(b"\x80"), "header_json"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\n", "foreign_format"),
        (b"PK\x03\x04" + bytes(200), "foreign_format"),
        (b"\x80\x02}q\x00." + bytes(200), "foreign_format"),
        (header({"__metadata__": {"format": 1}}, 0), "header_metadata"),
        (header({"__metadata__": []}, 0), "header_metadata"),
        (header({"t": []}), "header_entry"),
        (header({"t": {"dtype": "F32", "shape": [2, 2]}}), "header_entry"),
        (header({"t": {**SPAN, "more": 1}}), "header_entry"),
        (header({"t": {**SPAN, "dtype": "F33"}}), "dtype_unknown"),
        (header({"t": {**SPAN, "dtype": ["F32"]}}), "dtype_unknown"),
        (header({"t": {**SPAN, "shape": [-2, -2]}}), "header_entry"),
        (header({"t": {**SPAN, "shape": [2.0, 2]}}), "header_entry"),
        (header({"t": {**SPAN, "shape": [True, 4]}}), "header_entry"),
        (header({"t": {**SPAN, "shape": [1 << 62, 1 << 62]}}), "header_entry"),
        (header({"t": {**SPAN, "shape": [1] * 9}}), "header_entry"),
        (header({"t": {**SPAN, "shape": [3, 2]}}), "tensor_size"),
        (header({"t": {**SPAN, "data_offsets": [16, 0]}}), "offsets"),
        (header({"t": {**SPAN, "data_offsets": [0]}}), "offsets"),
        (header({"t": SPAN, "u": {**SPAN, "data_offsets": [8, 24]}}, 24), "overlap"),
        (header({"t": SPAN, "u": SPAN}), "overlap"),
        (header({"t": SPAN, "u": {**SPAN, "data_offsets": [20, 36]}}, 36), "gap"),
        (header({"t": {**SPAN, "data_offsets": [4, 20]}}, 20), "gap"),
        (header({"t": SPAN}, 15), "truncated"),
        (header({"t": SPAN}, 17), "trailing_bytes"),
        (header({"": SPAN}), "tensor_name"),
        (header({"a\nb": SPAN}), "tensor_name"),
        (header({"x" * 600: SPAN}), "tensor_name"),
        (with_header(b'{"\\ud800": {"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'), "header_json"),
        (with_header(b'{"t": {"dtype":"F32","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,0]}}'), "header_json"),
        (with_header(b'{"t": 1, "t": 2}'), "header_json"),
        (with_header(b"{}"), "no_tensors"),
    ],
)
def test_an_unsound_file_is_refused_with_its_fault(upload: Upload, content: bytes, code: str) -> None:
    report = upload.config().weights(content).check()
    assert codes(report) == {code}
    assert "adapter_model.safetensors" in report.reasons[0]


def test_a_file_cut_short_is_refused_with_its_name(good: Upload) -> None:
    path = good.folder / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    report = good.check()
    assert codes(report) == {"truncated"}
    assert "adapter_model.safetensors" in report.reasons[0]


def test_a_header_of_many_megabytes_of_nothing_takes_no_time(upload: Upload) -> None:
    started = time.monotonic()
    for filler in (b"[" * 9_000_000, b'{"a":' + b"[{}," * 2_000_000, b'{"' + b'\\"' * 4_000_000):
        assert codes(upload.config().weights(with_header(filler)).check()) == {"header_json"}
    assert time.monotonic() - started < 20


def test_padding_with_spaces_is_allowed(upload: Upload) -> None:
    whole = safetensors(pairs(), metadata={"format": "pt"})
    length = struct.unpack("<Q", whole[:8])[0]
    padded = with_header(whole[8 : 8 + length] + b"     ", whole[8 + length :])
    assert upload.config().weights(padded).check().verdict == "accept"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float64"])
def test_an_element_type_that_engines_mistake_is_refused(upload: Upload, dtype: str) -> None:
    tensors = {name: (array * 10).astype(dtype) for name, array in pairs().items()}
    report = upload.config().weights(tensors).check()
    assert codes(report) == {"dtype"}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_float_types_of_engines_are_accepted(upload: Upload, dtype: str) -> None:
    tensors = {name: array.astype(dtype) for name, array in pairs().items()}
    assert upload.config().weights(tensors).check().verdict == "accept"


def test_too_many_tensors_are_refused(upload: Upload) -> None:
    tensors = {f"t{number}": np.zeros(0, np.float32) for number in range(70_000)}
    report = upload.config().weights(tensors).check()
    assert codes(report) == {"too_many_tensors"}


def test_several_faults_are_all_shown(upload: Upload) -> None:
    tensors = pairs()
    tensors[key(0, "self_attn.q_proj", "A")][0, 0] = np.nan
    del tensors[key(1, "self_attn.q_proj", "B")]
    report = upload.config(use_dora=True, bias="all").weights(tensors).file("a\nb").check()
    found = {check.name for check in report.checks if check.verdict is Verdict.FAIL}
    assert found == {"files", "config", "compatibility", "numerics", "engines"}
    assert "a\\nb" in report.reasons[0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
sizes = st.one_of(st.integers(-4, 40), st.integers(), json_values)
entries = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "BF16", "F16", "F64", "I8", "F4", "X"]),
        "shape": st.lists(sizes, max_size=3),
        "data_offsets": st.lists(sizes, max_size=3),
    }
)
names = st.one_of(st.text(max_size=8), st.just(key(0, "self_attn.q_proj", "A")))
headers = st.one_of(
    st.dictionaries(names, entries | json_values, max_size=4).map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=64),
)


@settings(deadline=4000, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=headers, data=st.binary(max_size=64), length=st.none() | st.integers(0, (1 << 64) - 1))
def test_no_header_whatever_raises_or_hangs(upload: Upload, text: bytes, data: bytes, length: int | None) -> None:
    report = upload.config().weights(with_header(text, data, length=length)).check()
    assert report.verdict == "reject"
    assert len(report.digest) == 64
