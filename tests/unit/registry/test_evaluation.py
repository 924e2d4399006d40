import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import InvalidInput
from registry.evaluation import (
    MAX_EXAMPLES,
    Example,
    Gates,
    check_pattern,
    examples_digest,
    examples_json,
    parse_examples,
)

ROWS = [{"prompt": "Where is it?", "reference": "There.", "forbidden": "(?i)never"}, {"prompt": "And what?"}]


def test_examples_are_read_and_written_back() -> None:
    examples = parse_examples(ROWS)
    assert examples == (Example("Where is it?", "There.", "(?i)never"), Example("And what?"))
    assert examples_json(examples) == ROWS


def test_the_digest_is_of_the_examples_in_their_order() -> None:
    there, back = parse_examples(ROWS), parse_examples(ROWS[::-1])
    assert examples_digest(there) == examples_digest(parse_examples([{**ROWS[0]}, {**ROWS[1], "reference": None}]))
    assert examples_digest(there) != examples_digest(back)


@pytest.mark.parametrize(
    ("rows", "field"),
    [
        ([], "examples"),
        ([{"prompt": "x"}] * (MAX_EXAMPLES + 1), "examples"),
        (["a text"], "examples[0]"),
        ([{"prompt": "x"}, {"reference": "y"}], "examples[1].prompt"),
        ([{"prompt": ""}], "examples[0].prompt"),
        ([{"prompt": "x" * 8001}], "examples[0].prompt"),
        ([{"prompt": 1}], "examples[0].prompt"),
        ([{"prompt": "x", "reference": ["y"]}], "examples[0].reference"),
        ([{"prompt": "x", "forbidden": "(a+)+b"}], "examples[0].forbidden"),
        ([{"prompt": "x", "answer": "y"}], "examples[0].answer"),
        ([{"prompt": "é" * 7000, "reference": "é" * 3999}] * 100, "examples"),
    ],
)
def test_a_wrong_example_is_refused_by_its_field(rows: list[object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_examples(rows)
    assert caught.value.field == field
    assert field in caught.value.message


@pytest.mark.parametrize(
    "pattern",
    ["never", "(?i)as an ai|language model", r"\d{3}-\d{2,4}", "[a-z]+@[a-z.]+", r"(?:foo|bar)?", r"\(\*\)", "[(+*]"],
)
def test_ordinary_patterns_are_allowed(pattern: str) -> None:
    assert check_pattern(pattern, field="forbidden") == pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|a)*b",
        "(?:x|y){5}",
        "(a)(?=b)",
        "(?!a)b",
        "(?<=a)b",
        r"(a)\1",
        "(?P<n>a)(?P=n)",
        ".*.*.*.*x",
        "a{1000}",
        "a{5,1000}",
        "a{1,}b{1,}c{1,}d+",
        "(",
        "*",
        "[a--b]",
        "[[a]",
        "[[",
        "x" * 301,
        "",
    ],
)
def test_patterns_that_can_take_long_or_are_none_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        check_pattern(pattern, field="forbidden")


@given(st.text(alphabet="ab.*+?()[]{},1|\\", max_size=14), st.text(alphabet="ab", max_size=60))
def test_whatever_is_allowed_is_searched_for_quickly(pattern: str, text: str) -> None:
    try:
        check_pattern(pattern, field="forbidden")
    except InvalidInput:
        return
    began = time.process_time()
    re.search(pattern, text)
    assert time.process_time() - began < 1


def test_gates_are_read_and_written_back() -> None:
    gates = Gates.from_json({"max_perplexity": 8, "max_exact_agreement_drop": 0.1, "enforcement": "warn"})
    assert gates.closed == {"max_perplexity": 8.0, "max_exact_agreement_drop": 0.1}
    assert Gates.from_json(gates.to_json()) == gates


def test_no_gate_has_a_bound_before_one_is_set() -> None:
    assert Gates.from_json({}).closed == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_perplexity": -1},
        {"max_perplexity": "8"},
        {"max_perplexity": float("nan")},
        {"max_perplexity": True},
        {"min_exact_agreement": 1.5},
        {"max_exact_agreement_drop": 2},
        {"max_length": 3},
        {"enforcement": "shrug"},
    ],
)
def test_a_wrong_gate_is_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Gates.from_json(wrong)
    assert caught.value.field == next(iter(wrong))
