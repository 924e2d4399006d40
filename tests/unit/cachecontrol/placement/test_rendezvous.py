from collections import Counter
from uuid import UUID

import numpy as np

from cachecontrol.placement.ranks import RankLoad, added_cost
from cachecontrol.placement.rendezvous import node_seeds, preferences, version_seed

NAMES = [f"n{number}" for number in range(10)]


def order(number: int, names: list[str], weights: list[float] | None = None) -> list[str]:
    values = preferences(node_seeds(names), np.array(weights or [1.0] * len(names)), version_seed(UUID(int=number)))
    return [names[place] for place in np.argsort(-values)]


def test_a_node_that_leaves_changes_nothing_in_the_order_of_the_others() -> None:
    for number in range(50):
        assert order(number, NAMES[:4] + NAMES[5:]) == [name for name in order(number, NAMES) if name != "n4"]


def test_every_node_comes_first_for_its_share() -> None:
    firsts = Counter(order(number, NAMES, [3.0] + [1.0] * 9)[0] for number in range(2400))
    assert 500 < firsts["n0"] < 700  # 3 of 12
    assert all(140 < firsts[name] < 260 for name in NAMES[1:])


def test_the_order_is_the_same_on_every_machine() -> None:
    assert order(1, NAMES)[:3] == ["n4", "n9", "n5"]


def test_a_high_rank_costs_all_that_share_its_node() -> None:
    assert added_cost(RankLoad(8, 24, 100.0), rank=64, rate_per_h=1.0) == 64 + 100 * 56
    assert added_cost(RankLoad(64, 80, 100.0), rank=8, rate_per_h=1.0) == 64
    assert added_cost(RankLoad(), rank=8, rate_per_h=1.0) == 8
