import math
from datetime import timedelta
from typing import Any

import pytest

from cachecontrol.policy.document import PolicyDocument
from cachecontrol.policy.effective import scoring_settings
from cachecontrol.scoring.facts import Facts, Limit
from cachecontrol.scoring.make import POLICY_NAMES, make_policy
from cachecontrol.scoring.settings import ScoringSettings, WeightedLruWeights
from tests.unit.cachecontrol.scoring.kit import NOW, fact

SETTINGS = ScoringSettings()
AN_HOUR_AGO = NOW - timedelta(hours=1)


def value(policy: str, one: Facts, *, limit: Limit = Limit.SLOTS, settings: ScoringSettings = SETTINGS) -> float:
    return make_policy(policy, settings).score([one], now=NOW, limit=limit)[0].value


def kept(policy: str, *facts: Facts, limit: Limit = Limit.SLOTS) -> list[int]:
    """The numbers of the versions, the most worth first."""
    scores = make_policy(policy, SETTINGS).score(facts, now=NOW, limit=limit)
    ranked = sorted(zip(scores, facts, strict=True), key=lambda pair: -pair[0].value)
    return [one.version_id.int for _score, one in ranked]


def test_the_defaults_are_those_of_a_policy_document() -> None:
    assert scoring_settings(PolicyDocument(base_model="llama")) == SETTINGS


def test_density_is_the_formula_of_its_docstring() -> None:
    one = fact(rate_per_h=8.0, reload_ms=400.0, weight=4.0, size_mib=80.0, tenant_rate_per_h=100.0, is_retiring=True)
    slots = math.log(8) + 0.5 * math.log(400) + 0.5 * math.log(4) - 0.25 * math.log(100) + math.log(0.05)
    assert value("density", one) == pytest.approx(slots)
    assert value("density", one, limit=Limit.BYTES) == pytest.approx(slots - math.log(80))


def test_density_says_each_factor_and_size_only_where_bytes_are_short() -> None:
    policy = make_policy("density", SETTINGS)
    by_slots = policy.score([fact()], now=NOW, limit=Limit.SLOTS)[0]
    by_bytes = policy.score([fact()], now=NOW, limit=Limit.BYTES)[0]
    assert set(by_slots.factors) == {"rate", "reload", "priority", "tenant_rate", "retiring"}
    assert set(by_bytes.factors) - set(by_slots.factors) == {"size"}


def test_what_nobody_asks_for_has_a_finite_score_and_others_factors_still_count() -> None:
    dead = fact(1, rate_per_h=0.0, tenant_rate_per_h=0.0, last_used_at=None, reload_ms=500.0)
    dearer = fact(2, rate_per_h=0.0, tenant_rate_per_h=0.0, last_used_at=None, reload_ms=5000.0)
    assert math.isfinite(value("density", dead))
    assert kept("density", dead, dearer) == [2, 1]


def test_the_wait_in_the_load_queue_counts_as_cost_of_a_reload() -> None:
    assert value("density", fact(queue_wait_ms=1500.0)) == value("density", fact(reload_ms=2000.0))


def test_a_long_queue_makes_costs_alike_so_that_rates_decide() -> None:
    def both(wait: float) -> list[int]:
        dear = fact(1, rate_per_h=4.0, reload_ms=1000.0, queue_wait_ms=wait)
        asked = fact(2, rate_per_h=8.0, reload_ms=100.0, queue_wait_ms=wait)
        return kept("density", dear, asked)

    assert both(0.0) == [1, 2]
    assert both(60_000.0) == [2, 1]


def test_lru_keeps_what_was_used_last_and_lets_go_what_never_was() -> None:
    used, idle, never = fact(1), fact(2, last_used_at=AN_HOUR_AGO), fact(3, last_used_at=None)
    assert kept("lru", never, idle, used) == [1, 2, 3]


def test_lfu_keeps_what_was_asked_for_most() -> None:
    assert kept("lfu", fact(1, hits=3), fact(2, hits=30)) == [2, 1]


def test_gdsf_is_clock_plus_hits_times_cost_by_size_where_bytes_are_short() -> None:
    one = fact(clock=7.0, hits=6, reload_ms=400.0, size_mib=80.0)
    assert value("gdsf", one) == pytest.approx(7 + 6 * 400)
    assert value("gdsf", one, limit=Limit.BYTES) == pytest.approx(7 + 6 * 400 / 80)


def test_the_clock_of_gdsf_becomes_the_highest_score_that_was_evicted_and_never_goes_back() -> None:
    policy = make_policy("gdsf", SETTINGS)
    assert policy.clock_after(5.0, [7.0, 9.0]) == 9.0
    assert policy.clock_after(5.0, [2.0]) == 5.0
    assert policy.clock_after(5.0, []) == 5.0


@pytest.mark.parametrize("name", [name for name in POLICY_NAMES if name != "gdsf"])
def test_the_clock_stands_still_for_the_others(name: str) -> None:
    assert make_policy(name, SETTINGS).clock_after(5.0, [7.0]) == 5.0


def test_weighted_lru_keeps_each_factor_between_nothing_and_its_weight() -> None:
    crowd = [
        fact(number, rate_per_h=10.0**number, size_mib=5.0 * number, reload_ms=100.0 * number, weight=float(number))
        for number in range(1, 5)
    ]
    scores = make_policy("weighted_lru", SETTINGS).score(crowd, now=NOW, limit=Limit.SLOTS)
    weights = WeightedLruWeights()
    for score in scores:
        assert {name: abs(factor) <= getattr(weights, name) + 1e-9 for name, factor in score.factors.items()} == {
            "idle": True,
            "memory": True,
            "hits": True,
            "priority": True,
            "reload": True,
        }


def test_weighted_lru_tells_no_factor_apart_in_which_all_are_equal() -> None:
    scores = make_policy("weighted_lru", SETTINGS).score([fact(1), fact(2)], now=NOW, limit=Limit.SLOTS)
    assert scores[0] == scores[1]
    assert scores[0].value == 0.0


@pytest.mark.parametrize(
    ("weight", "better", "worse"),
    [
        ("idle", {"last_used_at": NOW}, {"last_used_at": AN_HOUR_AGO}),
        ("memory", {"size_mib": 10.0}, {"size_mib": 100.0}),
        ("hits", {"rate_per_h": 20.0}, {"rate_per_h": 10.0}),
        ("priority", {"weight": 4.0}, {"weight": 1.0}),
        ("reload", {"reload_ms": 900.0}, {"reload_ms": 100.0}),
    ],
)
def test_weighted_lru_goes_by_the_weight_it_is_given(
    weight: str, better: dict[str, Any], worse: dict[str, Any]
) -> None:
    nothing = {"idle": 0.0, "memory": 0.0, "hits": 0.0, "priority": 0.0, "reload": 0.0}
    settings = ScoringSettings(weighted_lru=WeightedLruWeights(**{**nothing, weight: 2.0}))
    policy = make_policy("weighted_lru", settings)
    first, second = policy.score([fact(1, **better), fact(2, **worse)], now=NOW, limit=Limit.SLOTS)
    assert first.value > second.value


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_nothing_to_score_is_no_scores(name: str) -> None:
    assert make_policy(name, SETTINGS).score([], now=NOW, limit=Limit.BYTES) == []
