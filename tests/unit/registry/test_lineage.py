from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import InvalidInput
from registry.lineage import Bound, check_lineage, read_bounds

DIGEST = "ab" * 32
COMMIT = "c0ffee" * 6 + "abcd"
WHOLE = {
    "training_data_digest": f"sha256:{DIGEST.upper()}",
    "run_url": "https://runs.example/42?view=loss",
    "git_commit": COMMIT.upper(),
    "metrics": {"eval_loss": 1.5, "steps": 900},
    "parent_version": "v1",
    "extra": {"operator": ["anything", {"at": "all"}]},
}


def checked(**given: object) -> dict[str, Any]:
    return check_lineage(given, adapter="tone")


def test_a_lineage_is_kept_in_one_form() -> None:
    assert checked(**WHOLE) == {
        **WHOLE,
        "training_data_digest": DIGEST,
        "git_commit": COMMIT,
        "parent_version": "tone@v1",
    }


def test_what_is_empty_is_left_out() -> None:
    assert checked(run_url="", metrics={}, git_commit=None, extra={}) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("training_data_digest", "abc"),
        ("training_data_digest", 7),
        ("run_url", "javascript:alert(1)"),
        ("run_url", "https://"),
        ("run_url", "https://[broken"),
        ("run_url", "https://user:secret@runs.example/1"),
        ("run_url", "https://runs.example/a b"),
        ("run_url", "https://runs.example/" + "x" * 2000),
        ("git_commit", "c0ffee"),
        ("git_commit", COMMIT + "0"),
        ("metrics", [1]),
        ("metrics", {"loss": "low"}),
        ("metrics", {"loss": True}),
        ("metrics", {"loss": float("nan")}),
        ("metrics", {"loss": float("inf")}),
        ("metrics", {"loss": 10**400}),
        ("metrics", {"": 1}),
        ("metrics", {"a b": 1}),
        ("metrics", {"a<b": 1}),
        ("metrics", {str(number): number for number in range(101)}),
        ("parent_version", "@v1"),
        ("parent_version", "a@b@c"),
        ("parent_version", ["v1"]),
        ("extra", "text"),
        ("datenset", "typo"),
    ],
)
def test_what_does_not_belong_there_is_refused_by_its_key(key: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(**{key: value})
    assert str(refused.value.field).startswith(f"lineage.{key}")


def test_a_lineage_is_short() -> None:
    with pytest.raises(InvalidInput, match="longer than"):
        checked(extra={"log": "x" * 70_000})


def test_bounds_of_metrics_are_read_as_people_write_them() -> None:
    assert read_bounds("eval_loss<2, acc>=0.9,eval/f1<=.5,steps=900") == (
        Bound("eval_loss", "lt", 2.0),
        Bound("acc", "gte", 0.9),
        Bound("eval/f1", "lte", 0.5),
        Bound("steps", "exact", 900.0),
    )


@pytest.mark.parametrize("text", ["", "loss", "loss<", "<2", "loss<two", "loss<nan", "loss<1e999", "a<1,,b<2", "a<<1"])
def test_a_bound_that_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_bounds(text)
    assert refused.value.field == "metric"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*WHOLE, "other"]), json_values | st.sampled_from([*WHOLE.values()])))
def test_whatever_comes_is_kept_or_refused_and_what_is_kept_is_kept_unchanged(given: dict[str, Any]) -> None:
    with suppress(InvalidInput):
        kept = check_lineage(given, adapter="tone")
        assert check_lineage(kept, adapter="other") == kept
