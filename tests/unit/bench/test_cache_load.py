from collections import Counter
from dataclasses import replace

from bench.cache.load import arrivals, shares
from bench.cache.plan import Plan

PLAN = Plan()


def test_both_arms_get_the_same_requests_in_the_order_of_their_time() -> None:
    load = arrivals(PLAN)

    assert load == arrivals(PLAN)
    assert len(load) == PLAN.requests
    assert [each.at for each in load] == sorted(each.at for each in load)
    assert load != arrivals(replace(PLAN, seed=PLAN.seed + 1))


def test_the_load_comes_at_the_stated_rate_and_asks_for_every_version_but_mostly_for_few() -> None:
    load = arrivals(PLAN)

    assert abs(len(load) / load[-1].at - PLAN.rate) < 0.1 * PLAN.rate
    assert len({each.version for each in load}) == PLAN.versions
    assert 0.3 < sum(shares(load)[:4]) < 0.7


def test_what_is_popular_drifts() -> None:
    load = arrivals(replace(PLAN, drift_s=5.0))
    half = len(load) // 2

    first, second = (
        {version for version, _times in Counter(each.version for each in part).most_common(4)}
        for part in (load[:half], load[half:])
    )

    assert first != second
