import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.evaluation import Example
from workers.evaluation.metrics import Result, largest_difference, measure, perplexity, worst
from workers.evaluation.ports import Score, Voice

CANDIDATE = Voice.CANDIDATE


def score(*log_probabilities: float, hits: tuple[bool, ...] = (), kl: float = 0.0) -> Score:
    count = len(log_probabilities)
    return Score(log_probabilities, hits or (True,) * count, (kl,) * count)


def result(
    number: int, mine: Score, *, reference: str | None = "yes", answer: str = "yes", forbidden: bool = False
) -> Result:
    return Result(
        number=number,
        example=Example("?", reference),
        answers={CANDIDATE: answer},
        scores={CANDIDATE: mine, Voice.BASE: score(-1.0)},
        forbidden=frozenset({CANDIDATE}) if forbidden else frozenset(),
    )


def test_perplexity_weighs_every_token_alike() -> None:
    halves = math.log(0.5)
    results = [result(0, score(halves)), result(1, score(halves, halves, math.log(0.125)))]
    assert measure(results, CANDIDATE).perplexity == pytest.approx(2 ** (6 / 4))


@given(st.floats(min_value=0.01, max_value=1), st.integers(min_value=1, max_value=50))
def test_the_perplexity_of_one_probability_is_its_inverse(probability: float, count: int) -> None:
    assert perplexity([math.log(probability)] * count) == pytest.approx(1 / probability, rel=1e-4)


def test_even_the_most_unlikely_tokens_have_a_perplexity_that_json_can_hold() -> None:
    found = perplexity([-1e6])
    assert found is not None
    assert math.isfinite(found)


def test_agreement_is_of_whole_answers_and_of_tokens() -> None:
    results = [
        result(0, score(-1.0, -1.0, hits=(True, False)), answer=" yes\n"),
        result(1, score(-1.0, -1.0, hits=(True, True)), answer="yes, but"),
    ]
    found = measure(results, CANDIDATE)
    assert (found.exact_agreement, found.token_agreement) == (0.5, 0.75)


def test_without_references_nothing_is_said_of_agreement() -> None:
    found = measure([result(0, score(-1.0, kl=0.25), reference=None)], CANDIDATE)
    assert (found.perplexity, found.exact_agreement, found.token_agreement) == (None, None, None)
    assert (found.examples, found.references, found.mean_kl) == (1, 0, 0.25)


def test_the_base_has_no_answers_and_yet_a_perplexity() -> None:
    found = measure([result(0, score(-2.0))], Voice.BASE)
    assert found.exact_agreement is None
    assert found.perplexity == pytest.approx(math.e, abs=1e-5)


def test_the_worst_come_first_and_forbidden_answers_before_all() -> None:
    results = [result(0, score(-1.0)), result(1, score(-3.0)), result(2, score(-0.1), forbidden=True)]
    assert [each.number for each in worst(results)] == [2, 1, 0]
    assert len(worst([result(number, score(-1.0)) for number in range(30)])) == 10


@given(st.lists(st.tuples(st.floats(-50, 0), st.floats(-50, 0)), min_size=1, max_size=20))
def test_the_largest_difference_is_symmetric_and_that_of_one_pair(pairs: list[tuple[float, float]]) -> None:
    one, other = zip(*pairs, strict=True)
    found = largest_difference(one, other)
    assert found == largest_difference(other, one)
    assert found in [abs(a - b) for a, b in pairs]
    assert all(found >= abs(a - b) for a, b in pairs)
