from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecontrol.admission import Claim, Shed, Waiting, admit, expected_wait_s, fair_order

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)


def waiting(number: int, tenant: str, *, age_s: float = 0, left_s: float = 30) -> Waiting:
    return Waiting(
        number=number,
        tenant=tenant,
        enqueued_at=NOW - timedelta(seconds=age_s),
        deadline_at=NOW + timedelta(seconds=left_s),
    )


def order(queue: list[Waiting], **claims: Claim) -> list[int]:
    return [one.number for one in fair_order(queue, claims, now=NOW)]


@pytest.mark.parametrize(
    ("queued", "of_tenant", "shed"),
    [(0, 0, None), (9, 1, None), (10, 0, Shed.QUEUE_FULL), (9, 4, Shed.TENANT_SHARE), (10, 4, Shed.QUEUE_FULL)],
)
def test_the_queue_and_each_tenants_part_of_it_have_a_bound(queued: int, of_tenant: int, shed: Shed | None) -> None:
    assert admit(queued=queued, limit=10, queued_of_tenant=of_tenant, share=4) is shed


def test_a_flood_of_one_tenant_does_not_delay_the_next_ones_turn() -> None:
    flood = [waiting(number, "flood", age_s=100 - number) for number in range(50)]
    assert order([*flood, waiting(99, "late")])[:2] == [0, 99]


def test_within_a_tenant_the_oldest_goes_first() -> None:
    assert order([waiting(1, "a", age_s=1), waiting(2, "a", age_s=3), waiting(3, "a", age_s=2)]) == [2, 3, 1]


def test_a_heavier_tenant_gets_turns_by_its_weight() -> None:
    queue = [waiting(10 * tenant + n, name) for tenant, name in ((1, "one"), (2, "four")) for n in range(10)]
    first = order(queue, one=Claim(weight=1), four=Claim(weight=4))[:10]
    assert sum(number >= 20 for number in first) == 8


def test_who_was_served_lately_comes_later() -> None:
    queue = [waiting(1, "served", age_s=9), waiting(2, "new")]
    assert order(queue, served=Claim(served=3)) == [2, 1]


def test_who_has_had_its_loads_is_left_out_and_nobody_waits_behind_it() -> None:
    queue = [waiting(1, "a", age_s=9), waiting(2, "a", age_s=8), waiting(3, "b")]
    assert order(queue, a=Claim(left=0)) == [3]
    assert order(queue, a=Claim(left=1)) == [1, 3]


def test_what_is_over_its_deadline_is_left_out() -> None:
    assert order([waiting(1, "a", left_s=0), waiting(2, "a", left_s=0.1)]) == [2]


@pytest.mark.parametrize(("ahead", "at_once", "load_s", "wait"), [(0, 1, 0.2, 1), (9, 2, 3, 15), (3, 0, 2, 8)])
def test_the_expected_wait_grows_with_those_ahead(ahead: int, at_once: int, load_s: float, wait: int) -> None:
    assert expected_wait_s(ahead=ahead, at_once=at_once, load_s=load_s) == wait


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60), st.integers(-5, 30)), max_size=30),
    st.dictionaries(
        st.sampled_from("abc"),
        st.builds(Claim, weight=st.sampled_from([1.0, 2.0, 4.0]), served=st.integers(0, 9), left=st.integers(0, 9)),
    ),
)
def test_everybody_gets_a_turn_and_no_tenant_runs_ahead_of_another_that_waits(
    rows: list[tuple[str, int, int]], claims: dict[str, Claim]
) -> None:
    queue = [waiting(n, tenant, age_s=age, left_s=left) for n, (tenant, age, left) in enumerate(rows)]
    found = fair_order(queue, claims, now=NOW)
    alive = [one for one in queue if one.deadline_at > NOW]
    charge = {tenant: float(claims.get(tenant, Claim()).served) for tenant in "abc"}
    given_to = dict.fromkeys("abc", 0)
    for one in found:
        claim = claims.get(one.tenant, Claim())
        mine = charge[one.tenant] / claim.weight
        for other in "abc":
            theirs = claims.get(other, Claim())
            left = [two for two in alive if two.tenant == other]
            if given_to[other] < min(len(left), theirs.left):
                assert mine <= charge[other] / theirs.weight + 1e-9
        charge[one.tenant] += 1
        given_to[one.tenant] += 1
    for tenant in "abc":
        have = sum(one.tenant == tenant for one in alive)
        assert given_to[tenant] == min(have, claims.get(tenant, Claim()).left)
