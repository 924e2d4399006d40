from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from cachecontrol.quotas import Resource
from cachecontrol.residents import MIB, Kept, Resident, rank_load, why_kept

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
VERSION = UUID(int=1)


def resident(**facts: Any) -> Resident:
    known: dict[str, Any] = {
        "key": 1,
        "node_id": 1,
        "version_id": VERSION,
        "tenant": "acme",
        "rank": 8,
        "is_settled": True,
        "is_broken": False,
        "is_hot": False,
        "used_at": NOW - timedelta(hours=1),
        "last_used_at": NOW - timedelta(minutes=1),
        "rate_per_h": 3.0,
        "tenant_rate_per_h": 9.0,
        "hits": 5,
        "size_bytes": 2 * MIB,
        "reload_ms": 40.0,
        "is_retiring": False,
        "clock": 0.0,
    }
    return Resident(**{**known, **facts})


def kept(found: Resident, **facts: Any) -> Kept | None:
    return why_kept(found, now=NOW, min_residency=timedelta(seconds=10), **facts)


@pytest.mark.parametrize(
    ("facts", "rules", "why"),
    [
        ({}, {}, None),
        ({}, {"in_flight": {uuid4()}, "pinned": {uuid4()}}, None),
        ({"used_at": None}, {}, None),
        ({"used_at": NOW - timedelta(seconds=10)}, {}, None),
        ({"used_at": NOW - timedelta(seconds=9.9)}, {}, Kept.RECENT),
        ({"is_settled": False}, {}, Kept.ON_ITS_WAY),
        ({}, {"in_flight": {VERSION}}, Kept.IN_FLIGHT),
        ({"is_settled": False}, {"pinned": {VERSION}}, Kept.PINNED),
        ({"is_broken": True, "is_settled": False}, {"pinned": {VERSION}, "in_flight": {VERSION}}, None),
    ],
)
def test_what_is_pinned_on_its_way_in_flight_or_just_used_is_kept(
    facts: dict[str, Any], rules: dict[str, Any], why: Kept | None
) -> None:
    assert kept(resident(**facts), **rules) is why


def test_leaving_the_engine_gives_back_bytes_and_a_slot_if_it_was_hot() -> None:
    assert resident().holding.amounts == {Resource.CPU_BYTES: 2 * MIB}
    assert resident(is_hot=True).holding.amounts == {Resource.CPU_BYTES: 2 * MIB, Resource.GPU_SLOTS: 1}


def test_the_facts_of_a_score_are_in_its_units() -> None:
    facts = resident().facts(weight=4, queue_wait_ms=7)
    assert (facts.size_mib, facts.weight, facts.queue_wait_ms, facts.reload_ms) == (2.0, 4, 7, 40.0)


def test_a_node_costs_by_its_highest_and_summed_rank() -> None:
    load = rank_load([resident(rank=8), resident(rank=64, rate_per_h=1.0)])
    assert (load.highest, load.summed, load.rate_per_h) == (64, 72, 4.0)
    assert rank_load([]).highest == 0
