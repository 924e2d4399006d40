import pytest

from workers.node.disk.index import Kept
from workers.node.disk.marks import Drop, excess, in_the_way, outlived

OLD, MIDDLE, NEW = Kept("lk-old", 10, 5), Kept("lk-middle", 20, 5), Kept("lk-new", 30, 5)


def test_what_nobody_used_for_long_has_outlived_its_time() -> None:
    assert outlived([NEW, OLD], ttl_s=25, now=40) == (Drop("lk-old", "ttl"),)


@pytest.mark.parametrize(
    ("used", "freed"), [(90, 0), (95, 0), (96, 46), (200, 150)], ids=["below", "at it", "just beyond", "far beyond"]
)
def test_beyond_the_high_mark_room_is_made_down_to_the_low_one(used: int, freed: int) -> None:
    assert excess(used, budget=100, high_water=0.95, low_water=0.5) == freed


def test_without_a_budget_nothing_is_beyond_a_mark() -> None:
    assert excess(10**12, budget=None, high_water=0.95, low_water=0.5) == 0


def test_the_least_recently_used_go_first_and_no_more_than_needed() -> None:
    drops = in_the_way([NEW, OLD, MIDDLE], to_free=6, may_go=lambda _: True)
    assert drops == (Drop("lk-old", "pressure"), Drop("lk-middle", "pressure"))


def test_what_may_not_go_stays_and_what_frees_nothing_too() -> None:
    shared = Kept("lk-shared", 1, 0)
    drops = in_the_way([shared, OLD, NEW], to_free=5, may_go=lambda name: name != "lk-old")
    assert drops == (Drop("lk-new", "pressure"),)


def test_what_is_named_goes_first_in_that_order_and_then_what_is_used_least() -> None:
    drops = in_the_way([NEW, OLD, MIDDLE], to_free=10**6, may_go=lambda _: True, first=("lk-new", "lk-gone"))
    assert [drop.name for drop in drops] == ["lk-new", "lk-old", "lk-middle"]
