from uuid import UUID

import pytest

from cachecontrol.scoring.choose import Choice, choose_victims, fewest_first
from cachecontrol.scoring.facts import Facts, Limit
from cachecontrol.scoring.make import make_policy
from cachecontrol.scoring.settings import ScoringSettings
from tests.unit.cachecontrol.scoring.kit import NOW, fact


def chosen(*facts: Facts, need: float, limit: Limit = Limit.SLOTS, policy: str = "lfu") -> tuple[Choice, ...]:
    return choose_victims(make_policy(policy, ScoringSettings()), facts, now=NOW, limit=limit, need=need)


def numbers(choices: tuple[Choice, ...]) -> list[int]:
    return [choice.victim.int for choice in choices]


def test_the_smallest_scores_go_and_the_next_in_order_is_the_runner_up() -> None:
    choices = chosen(fact(1, hits=9), fact(2, hits=1), fact(3, hits=4), need=1)
    assert numbers(choices) == [2]
    assert choices[0].score.value == 1
    assert choices[0].runner_up == UUID(int=3)
    assert choices[0].runner_up_score is not None
    assert choices[0].runner_up_score.value == 4


def test_of_two_that_go_neither_is_the_others_runner_up() -> None:
    choices = chosen(fact(1, hits=9), fact(2, hits=1), fact(3, hits=4), need=2)
    assert numbers(choices) == [2, 3]
    assert {choice.runner_up for choice in choices} == {UUID(int=1)}


def test_whoever_is_alone_has_no_runner_up() -> None:
    choices = chosen(fact(1), need=1)
    assert choices[0].runner_up is None
    assert choices[0].runner_up_score is None


def test_a_need_that_cannot_be_met_evicts_nobody() -> None:
    assert chosen(fact(1), fact(2), need=3) == ()
    assert chosen(fact(1, size_mib=10), need=10.5, limit=Limit.BYTES) == ()
    assert chosen(need=1) == ()


@pytest.mark.parametrize("need", [0, -3])
def test_no_need_evicts_nobody(need: float) -> None:
    assert chosen(fact(1), need=need) == ()


def test_a_small_one_is_spared_when_a_large_one_has_to_go_anyway() -> None:
    small, large = fact(1, hits=1, size_mib=5), fact(2, hits=2, size_mib=500)
    assert numbers(chosen(small, large, need=100, limit=Limit.BYTES)) == [2]


def test_equal_scores_go_by_last_use_and_then_by_id() -> None:
    never = fact(3, last_used_at=None)
    assert numbers(chosen(fact(2), fact(1), never, need=2)) == [3, 1]


def test_places_are_chosen_in_order_until_they_are_enough() -> None:
    assert fewest_first([1, 1, 1], 2) == [0, 1]
    assert fewest_first([1, 4, 9], 4.5) == [0, 1]
    assert fewest_first([1, 4, 9], 8) == [2]
