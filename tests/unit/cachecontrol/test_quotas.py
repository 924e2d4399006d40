from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecontrol.quotas import (
    Bounds,
    Holding,
    Quota,
    Quotas,
    Resource,
    admits,
    allowed_victims,
    floors_of,
    kept_by_floor,
    wait_for_load,
)

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
SLOTS, MEMORY = Resource.GPU_SLOTS, Resource.CPU_BYTES
ONE = {SLOTS: 1}


def quotas(**slots: tuple[int, int | None]) -> Quotas:
    return Quotas(tenants={tenant: Quota({SLOTS: Bounds(*bounds)}) for tenant, bounds in slots.items()})


def slots(**held: int) -> dict[str, dict[Resource, int]]:
    return {tenant: {SLOTS: number} for tenant, number in held.items()}


def residents(**held: int) -> dict[str, Holding]:
    return {f"{tenant}{index}": Holding(tenant, ONE) for tenant, number in held.items() for index in range(number)}


def owners(tenant: str, rules: Quotas, **held: int) -> set[str]:
    """The tenants some of whose residents ``tenant`` may displace for one slot more."""
    found = allowed_victims(tenant=tenant, wants=ONE, quotas=rules, used=slots(**held), held=residents(**held))
    return {key.rstrip("0123456789") for key in found}


def test_without_quotas_everybody_may_displace_everybody() -> None:
    assert owners("a", Quotas(), a=1, b=1) == {"a", "b"}
    assert admits(tenant="a", wants=ONE, quotas=Quotas(), used={}).is_possible


def test_above_its_ceiling_a_tenant_evicts_only_itself() -> None:
    rules = quotas(a=(0, 2))
    assert owners("a", rules, a=1, b=3) == {"a", "b"}
    assert owners("a", rules, a=2, b=3) == {"a"}
    verdict = admits(tenant="a", wants=ONE, quotas=rules, used=slots(a=2))
    assert (verdict.is_possible, verdict.only_itself) == (True, True)
    assert verdict.reason == "a has all of the GPU slots that its quota allows"


def test_a_tenant_at_its_ceiling_that_has_nothing_here_displaces_nobody() -> None:
    assert (
        allowed_victims(tenant="a", wants=ONE, quotas=quotas(a=(0, 1)), used=slots(a=1), held=residents(b=3))
        == frozenset()
    )


def test_only_what_gives_back_the_scarce_thing_helps_a_tenant_above_its_ceiling() -> None:
    rules = Quotas(tenants={"a": Quota({SLOTS: Bounds(0, 1)})})
    held = {"hot": Holding("a", {SLOTS: 1, MEMORY: 5}), "warm": Holding("a", {MEMORY: 5})}
    used = {"a": {SLOTS: 1, MEMORY: 10}}
    assert allowed_victims(tenant="a", wants={SLOTS: 1, MEMORY: 5}, quotas=rules, used=used, held=held) == {"hot"}
    assert allowed_victims(tenant="a", wants={MEMORY: 5}, quotas=rules, used=used, held=held) == {"hot", "warm"}


def test_what_no_empty_pool_would_hold_is_never_possible() -> None:
    rules = Quotas(default=Quota({MEMORY: Bounds(0, 10)}))
    verdict = admits(tenant="a", wants={MEMORY: 11}, quotas=rules, used={})
    assert not verdict.is_possible
    assert verdict.reason == "a may have 10 CPU bytes and this takes 11"
    held = {"x": Holding("b", {MEMORY: 100})}
    assert allowed_victims(tenant="a", wants={MEMORY: 11}, quotas=rules, used={}, held=held) == frozenset()


def test_a_floor_is_lent_while_it_is_unused_and_taken_back_from_those_above_theirs() -> None:
    rules = quotas(a=(2, None), c=(1, None))
    assert owners("b", rules, a=0, b=3, c=1) == {"b"}
    assert owners("a", rules, a=0, b=3, c=1) == {"b"}


def test_a_tenant_below_its_floor_gives_up_nothing_of_its_own_while_others_can() -> None:
    rules = quotas(a=(2, None), c=(1, None))
    assert owners("a", rules, a=1, b=2, c=1) == {"b"}
    assert owners("a", rules, a=1, c=1) == {"a"}
    assert owners("a", rules, a=2, b=2, c=1) == {"a", "b"}


def test_nobody_is_pushed_below_its_floor_by_others() -> None:
    rules = quotas(a=(2, None))
    assert owners("b", rules, a=2, b=2) == {"b"}
    assert owners("b", rules, a=3, b=1) == {"a", "b"}


def test_a_version_too_large_to_leave_its_owner_its_floor_stays() -> None:
    rules = Quotas(tenants={"a": Quota({MEMORY: Bounds(10, None)})})
    held = {"large": Holding("a", {MEMORY: 6}), "small": Holding("a", {MEMORY: 5})}
    found = allowed_victims(tenant="b", wants={MEMORY: 1}, quotas=rules, used={"a": {MEMORY: 15}}, held=held)
    assert found == {"small"}


@pytest.mark.parametrize(
    ("limit", "ages", "wait"),
    [
        (None, (1, 1, 1), 0),
        (2, (), 0),
        (2, (10,), 0),
        (2, (50, 10), 10),
        (2, (60, 10), 0),
        (2, (50, 40, 10), 20),
        (0.5, (90,), 30),
        (0.5, (120,), 0),
        (1.5, (30,), 10),
        (1.5, (40,), 0),
        (2.5, (40, 10), 8),
    ],
)
def test_loads_are_counted_over_a_minute_that_moves(limit: float | None, ages: tuple[int, ...], wait: int) -> None:
    started = [NOW - timedelta(seconds=age) for age in ages]
    assert wait_for_load(limit=limit, started=started, now=NOW) == timedelta(seconds=wait)


TENANTS = "abcd"
CAPACITY = 6


@settings(max_examples=150, deadline=None)
@given(
    floors=st.lists(st.integers(0, 2), min_size=4, max_size=4).filter(lambda found: sum(found) <= CAPACITY),
    bursts=st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=4, max_size=4),
    asks=st.lists(st.tuples(st.sampled_from(TENANTS), st.randoms(use_true_random=False)), max_size=40),
)
def test_whoever_asks_in_whatever_order_floors_and_ceilings_hold(
    floors: list[int], bursts: list[int | None], asks: list[tuple[str, object]]
) -> None:
    ceilings = [None if burst is None else floor + burst for floor, burst in zip(floors, bursts, strict=True)]
    rules = quotas(**dict(zip(TENANTS, zip(floors, ceilings, strict=True), strict=True)))
    pool: list[str] = []
    for tenant, random in asks:
        before = Counter(pool)
        used, held = slots(**before), {str(at): Holding(owner, ONE) for at, owner in enumerate(pool)}
        verdict = admits(tenant=tenant, wants=ONE, quotas=rules, used=used)
        if not verdict.is_possible:
            assert rules.of(tenant).of(SLOTS).ceiling == 0
            continue
        if verdict.only_itself or len(pool) == CAPACITY:
            allowed = sorted(allowed_victims(tenant=tenant, wants=ONE, quotas=rules, used=used, held=held))
            # A floor that is not used up always finds somebody else who gives the room back.
            is_below = before[tenant] < rules.of(tenant).of(SLOTS).floor
            assert not is_below or (allowed and all(pool[int(key)] != tenant for key in allowed))
            if not allowed:
                continue
            pool.pop(int(random.choice(allowed)))  # type: ignore[attr-defined]  # hypothesis's own Random
        pool.append(tenant)
        after = Counter(pool)
        for other in TENANTS:
            bounds = rules.of(other).of(SLOTS)
            assert bounds.ceiling is None or after[other] <= bounds.ceiling
            assert after[other] >= min(before[other], bounds.floor) or other == tenant


def test_others_take_no_more_of_a_tenants_files_than_is_beyond_its_floor() -> None:
    held = [("old", 400), ("older than the next", 300), ("new", 300)]
    assert kept_by_floor(held, lent=400) == {"older than the next", "new"}
    assert kept_by_floor(held, lent=399) == {"old", "new"}
    assert kept_by_floor(held, lent=0) == {"old", "older than the next", "new"}
    assert not kept_by_floor(held, lent=1000)


def test_only_those_with_a_floor_have_one() -> None:
    quotas = Quotas(tenants={"acme": Quota(bounds={Resource.DISK_BYTES: Bounds(floor=5)}), "bolt": Quota()})
    assert floors_of(quotas, Resource.DISK_BYTES) == {"acme": 5}
    assert not floors_of(quotas, Resource.CPU_BYTES)
