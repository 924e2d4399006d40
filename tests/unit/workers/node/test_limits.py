from typing import Any

import pytest

from workers.node.limits import MAX_DOWNLOADS, Limits, LimitsBook

TOLD: dict[str, Any] = {
    "disk_bytes": 1000,
    "high_water": 0.9,
    "low_water": 0.8,
    "disk_ttl_s": 3600,
    "scrub_bytes_per_s": 1024,
    "concurrent_downloads": 2,
    "origin_timeout_s": 5,
}


def test_what_web_says_holds() -> None:
    book = LimitsBook(Limits())
    book.take(TOLD)
    assert book.now == Limits(1000, 0.9, 0.8, 3600, 1024, 2, 5)


def test_what_web_leaves_out_or_does_not_know_is_the_operators() -> None:
    book = LimitsBook(Limits(disk_bytes=500, disk_ttl_s=60))
    book.take(TOLD)
    book.take({"disk_ttl_s": None, "something_new": 1})
    assert book.now == Limits(disk_bytes=500, disk_ttl_s=60)


@pytest.mark.parametrize(("own", "holds"), [(500, 500), (5000, 1000), (None, 1000)])
def test_the_smaller_budget_holds(own: int | None, holds: int) -> None:
    book = LimitsBook(Limits(disk_bytes=own))
    book.take(TOLD)
    assert book.now.disk_bytes == holds


def test_no_more_downloads_than_there_are_threads() -> None:
    book = LimitsBook(Limits())
    book.take({"concurrent_downloads": 1000})
    assert book.now.concurrent_downloads == MAX_DOWNLOADS


def test_no_limits_change_nothing() -> None:
    book = LimitsBook(Limits())
    book.take(TOLD)
    book.take(None)
    assert book.now.disk_bytes == 1000


@pytest.mark.parametrize(
    "told",
    [
        [1],
        {**TOLD, "disk_bytes": 0},
        {**TOLD, "disk_bytes": "much"},
        {**TOLD, "disk_bytes": True},
        {**TOLD, "high_water": 1.5},
        {**TOLD, "low_water": 0.9},
        {**TOLD, "concurrent_downloads": 0},
        {**TOLD, "origin_timeout_s": float("nan")},
    ],
)
def test_what_makes_no_sense_is_not_heeded(told: object) -> None:
    book = LimitsBook(Limits())
    book.take({"disk_ttl_s": 7})
    with pytest.raises(ValueError, match="must be"):
        book.take(told)
    assert book.now.disk_ttl_s == 7


@pytest.mark.parametrize("name", ["disk_bytes", "concurrent_downloads", "disk_ttl_s", "scrub_bytes_per_s"])
@pytest.mark.parametrize("value", [float("inf"), 10**400])
def test_a_number_beyond_all_bounds_is_not_heeded(name: str, value: float) -> None:
    book = LimitsBook(Limits())
    with pytest.raises(ValueError, match=f"{name} must be"):
        book.take({**TOLD, name: value})
    assert book.now == Limits()


def test_what_is_expendable_keeps_its_order_until_web_says_otherwise() -> None:
    book = LimitsBook(Limits())
    book.take({"expendable": ["lk-b", "lk-a"]})
    book.take({"high_water": 0.9})
    assert book.now.expendable == ("lk-b", "lk-a")
    with pytest.raises(ValueError, match="expendable"):
        book.take({"expendable": [1]})
    book.take({"expendable": []})
    assert not book.now.expendable


def test_whose_files_are_guaranteed_holds_until_web_says_otherwise() -> None:
    book = LimitsBook(Limits())
    book.take({"guaranteed": ["lk-a", "lk-b"]})
    book.take({"high_water": 0.9})
    assert (set(book.now.guaranteed), book.now.high_water) == ({"lk-a", "lk-b"}, 0.9)
    with pytest.raises(ValueError, match="guaranteed"):
        book.take({"guaranteed": "lk-a"})
    book.take({"guaranteed": []})
    assert book.now.guaranteed == frozenset()
