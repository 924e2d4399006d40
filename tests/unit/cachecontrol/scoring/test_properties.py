"""What holds for every policy and for all facts."""

import math
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from cachecontrol.scoring.choose import choose_victims
from cachecontrol.scoring.facts import Facts, Limit
from cachecontrol.scoring.make import POLICY_NAMES, make_policy
from cachecontrol.scoring.rates import add_hits, decayed
from cachecontrol.scoring.settings import ScoringSettings
from tests.unit.cachecontrol.scoring.kit import NOW, fact

few = settings(max_examples=40, deadline=None)
amounts = some.one_of(some.just(0.0), some.floats(1e-12, 1e9))
policies = some.sampled_from(POLICY_NAMES).map(lambda name: make_policy(name, ScoringSettings()))
limits = some.sampled_from(Limit)
times = some.none() | some.integers(0, 10**7).map(lambda seconds: NOW - timedelta(seconds=seconds))
crowds = some.lists(
    some.builds(
        Facts,
        version_id=some.integers(0, 2**64).map(lambda number: UUID(int=number)),
        tenant=some.sampled_from(["acme", "globex"]),
        rate_per_h=amounts,
        tenant_rate_per_h=amounts,
        hits=some.integers(0, 10**9),
        last_used_at=times,
        size_mib=amounts,
        reload_ms=amounts,
        weight=some.sampled_from([1.0, 2.0, 4.0]),
        is_retiring=some.booleans(),
        clock=some.floats(0, 1e6),
    ),
    max_size=12,
    unique_by=lambda one: one.version_id,
)


@few
@given(policies, crowds, limits)
def test_scores_are_finite_and_the_sum_of_their_factors(policy: Any, facts: list[Facts], limit: Limit) -> None:
    for score in policy.score(facts, now=NOW, limit=limit):
        assert math.isfinite(score.value)
        assert score.value == pytest.approx(sum(score.factors.values()))


@few
@given(policies, crowds, limits, some.floats(0.001, 1e10))
def test_the_need_is_met_by_victims_none_of_whom_is_spare(
    policy: Any, facts: list[Facts], limit: Limit, need: float
) -> None:
    rooms = {one.version_id: 1.0 if limit is Limit.SLOTS else one.size_mib for one in facts}
    choices = choose_victims(policy, facts, now=NOW, limit=limit, need=need)
    freed = [rooms[choice.victim] for choice in choices]
    if math.fsum(rooms.values()) < need:
        assert choices == ()
        return
    assert math.fsum(freed) >= need
    assert all(math.fsum(freed[:place] + freed[place + 1 :]) < need for place in range(len(freed)))
    assert not {choice.runner_up for choice in choices} & {choice.victim for choice in choices}


@few
@given(policies, crowds, limits, some.randoms(use_true_random=False))
def test_the_order_in_which_facts_come_makes_no_difference(
    policy: Any, facts: list[Facts], limit: Limit, random: Any
) -> None:
    shuffled = list(facts)
    random.shuffle(shuffled)
    need = len(facts) / 2 if limit is Limit.SLOTS else sum(one.size_mib for one in facts) / 2
    assert choose_victims(policy, facts, now=NOW, limit=limit, need=need) == choose_victims(
        policy, shuffled, now=NOW, limit=limit, need=need
    )


BETTER: dict[str, dict[str, Any]] = {
    "more requests": {"rate_per_h": 20.0},
    "a dearer reload": {"reload_ms": 900.0},
    "a higher priority": {"weight": 4.0},
    "less to hold": {"size_mib": 40.0},
    "a quieter tenant": {"tenant_rate_per_h": 50.0},
}
WORSE: dict[str, dict[str, Any]] = {"retiring": {"is_retiring": True}}


@pytest.mark.parametrize("changes", BETTER.values(), ids=BETTER)
def test_density_keeps_longer_what_is_better_in_one_respect(changes: dict[str, Any]) -> None:
    assert margin(fact(), changes) > 0


@pytest.mark.parametrize("changes", WORSE.values(), ids=WORSE)
def test_density_keeps_shorter_what_is_worse_in_one_respect(changes: dict[str, Any]) -> None:
    assert margin(fact(), changes) < 0


def margin(one: Facts, changes: dict[str, Any]) -> float:
    policy = make_policy("density", ScoringSettings())
    before, after = policy.score([one, replace(one, **changes)], now=NOW, limit=Limit.BYTES)
    return after.value - before.value


RISING = {
    "density": ["rate_per_h", "reload_ms", "weight", "queue_wait_ms"],
    "gdsf": ["hits", "reload_ms", "clock"],
    "lfu": ["hits"],
    "lru": [],
    "weighted_lru": ["rate_per_h", "reload_ms", "weight"],
}


@few
@given(crowds, limits, some.data())
def test_a_version_never_loses_ground_by_growing_in_what_speaks_for_it(
    facts: list[Facts], limit: Limit, data: Any
) -> None:
    name = data.draw(some.sampled_from([name for name in POLICY_NAMES if RISING[name]]))
    if len(facts) < 2:
        return
    field = data.draw(some.sampled_from(RISING[name]))
    more = getattr(facts[0], field) + data.draw(some.integers(1, 10**6))
    policy = make_policy(name, ScoringSettings())
    before = [score.value for score in policy.score(facts, now=NOW, limit=limit)]
    after = [
        score.value for score in policy.score([replace(facts[0], **{field: more}), *facts[1:]], now=NOW, limit=limit)
    ]
    for was, other, still, another in zip(before[:1] * len(facts), before, after[:1] * len(facts), after, strict=True):
        assert (still - another) >= (was - other) - 1e-6 * max(1.0, abs(was), abs(other))


@few
@given(amounts, some.integers(0, 10**6), some.integers(0, 10**6))
def test_decay_composes(amount: float, first: int, second: int) -> None:
    def later(value: float, since: datetime, seconds: int) -> float:
        return decayed(value, as_of=since, now=since + timedelta(seconds=seconds), half_life=timedelta(hours=5))

    middle = NOW + timedelta(seconds=first)
    assert later(later(amount, NOW, first), middle, second) == pytest.approx(later(amount, NOW, first + second))


@few
@given(some.permutations([0, 60, 600, 3600, 7200]))
def test_hits_may_be_counted_in_any_order(order: list[int]) -> None:
    def counted(seconds: list[int]) -> tuple[float, datetime]:
        count, as_of = 0.0, NOW
        for offset in seconds:
            at = NOW + timedelta(seconds=offset)
            count, as_of = add_hits(count, as_of=as_of, hits=1, at=at, half_life=timedelta(minutes=30))
        return count, as_of

    count, as_of = counted(order)
    expected, until = counted(sorted(order))
    assert count == pytest.approx(expected)
    assert as_of == until
