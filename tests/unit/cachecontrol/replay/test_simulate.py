from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from cachecontrol.replay.heat import Heat
from cachecontrol.replay.report import COLUMNS, as_text, compare
from cachecontrol.replay.simulate import NodeShape, Tally, replay
from cachecontrol.replay.trace import Trace
from cachecontrol.scoring.choose import choose_victims
from cachecontrol.scoring.facts import Facts, Limit
from cachecontrol.scoring.make import POLICY_NAMES, make_policy
from cachecontrol.scoring.rates import add_hits, decayed, rate_per_h
from cachecontrol.scoring.settings import ScoringSettings
from cachecontrol.scoring.summed import total
from tests.unit.cachecontrol.replay.kit import trace

SETTINGS = ScoringSettings()


def replayed(given_trace: Trace, shape: NodeShape, *, policy: str = "lru") -> Tally:
    return replay(given_trace, make_policy(policy, SETTINGS), SETTINGS, shape)


def test_a_second_request_is_a_hit_and_the_first_costs_what_the_version_does() -> None:
    tally = replayed(trace([0, 0, 1], remote_ms=[300.0, 50.0], size_mib=[20.0, 5.0]), NodeShape(gpu_slots=1, places=2))
    assert (tally.requests, tally.misses, tally.gpu_hits) == (3, 2, 1)
    assert tally.cost_ms == 350.0
    assert tally.loaded_mib == tally.fetched_mib == 25.0


def test_cost_counts_once_more_by_the_priority_of_the_tenant() -> None:
    tally = replayed(trace([0, 1], weight=[1.0, 4.0]), NodeShape(places=2))
    assert tally.cost_ms == 200.0
    assert tally.weighted_cost_ms == 500.0


def test_lru_misses_where_the_least_recent_had_to_go() -> None:
    shape = NodeShape(gpu_slots=1, places=2)
    assert replayed(trace([0, 1, 2, 0]), shape).misses == 4
    assert replayed(trace([0, 1, 0, 2, 0]), shape).misses == 3


def test_lfu_keeps_what_was_asked_for_often() -> None:
    asked = trace([0, 0, 0, 1, 2, 0])
    assert replayed(asked, NodeShape(gpu_slots=1, places=2), policy="lfu").misses == 3
    assert replayed(asked, NodeShape(gpu_slots=1, places=2), policy="lru").misses == 4


def test_density_keeps_the_dearer_of_two_that_are_asked_for_alike() -> None:
    asked = trace([0, 1, 2, 0], remote_ms=[9000.0, 10.0, 10.0])
    assert replayed(asked, NodeShape(gpu_slots=1, places=2), policy="density").misses == 3
    assert replayed(asked, NodeShape(gpu_slots=1, places=2), policy="lru").misses == 4


def test_a_budget_of_bytes_lets_go_as_many_as_it_takes() -> None:
    asked = trace([0, 1, 2, 0, 1], size_mib=[10.0, 10.0, 20.0])
    assert replayed(asked, NodeShape(places=9, memory_mib=20.0)).misses == 5
    assert replayed(asked, NodeShape(places=9, memory_mib=40.0)).misses == 3


def test_what_is_larger_than_the_room_is_served_each_time_anew_and_pushes_nobody_out() -> None:
    asked = trace([0, 1, 1, 0], size_mib=[10.0, 99.0])
    assert replayed(asked, NodeShape(places=9, memory_mib=50.0)).misses == 3


def test_what_left_the_engine_comes_back_from_disk_for_less() -> None:
    tally = replayed(trace([0, 1, 0]), NodeShape(gpu_slots=1, places=1, disk_mib=100.0))
    assert (tally.remote_loads, tally.disk_loads) == (2, 1)
    assert tally.fetched_mib == 20.0
    assert tally.cost_ms == pytest.approx(100 + 100 + 15 + 5)


def test_files_of_what_the_engine_holds_stay_on_disk() -> None:
    tally = replayed(trace([0, 1, 0, 1]), NodeShape(gpu_slots=1, places=2, disk_mib=10.0))
    assert tally.misses == 2


def test_an_engine_that_frees_nothing_on_an_unload_reads_again_what_it_dropped() -> None:
    asked = trace([0, 0, 0, 1, 2, 0], size_mib=[10.0] * 3)
    shape = NodeShape(gpu_slots=1, places=2, frees_on_unload=False)
    assert replayed(asked, shape, policy="lfu").silent_reads == 1
    assert replayed(asked, replace(shape, frees_on_unload=True), policy="lfu").silent_reads == 0
    assert replayed(asked, replace(shape, cpu_slots=3), policy="lfu").silent_reads == 0


def test_an_entry_of_many_requests_misses_once() -> None:
    asked = replace(trace([0]), requests=np.array([7]))
    tally = replayed(asked, NodeShape())
    assert (tally.requests, tally.misses, tally.gpu_hits) == (7, 1, 6)


def test_a_retired_version_goes_before_one_that_is_asked_for_less() -> None:
    asked = trace([0, 0, 0, 1, 2, 1])
    retired = replace(asked, retires_at=np.array([150.0, np.inf, np.inf]))
    assert replayed(asked, NodeShape(gpu_slots=1, places=2), policy="density").misses == 4
    assert replayed(retired, NodeShape(gpu_slots=1, places=2), policy="density").misses == 3


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_replay_scores_as_the_policy_does_that_serves(name: str) -> None:
    asked = trace([0, 1, 2, 0, 3, 1, 0], weight=[1.0, 4.0], remote_ms=[50.0, 70.0, 900.0, 20.0])
    columns = _heat_of(asked).columns(np.arange(4), at=600.0, reload_ms=asked.remote_ms, clock=np.zeros(4))
    policy = make_policy(name, SETTINGS)
    now = _time(600.0)
    facts = [_fact_of(asked, version, now) for version in range(4)]
    for limit in Limit:
        assert total(policy.terms(columns, limit=limit)).tolist() == pytest.approx(
            [score.value for score in policy.score(facts, now=now, limit=limit)]
        )
    assert choose_victims(policy, facts, now=now, limit=Limit.SLOTS, need=1)[0].victim.int == int(
        np.argmin(total(policy.terms(columns, limit=Limit.SLOTS)))
    )


@settings(max_examples=30, deadline=None)
@given(some.sampled_from(POLICY_NAMES), some.lists(some.integers(0, 8), min_size=1, max_size=60), some.integers(1, 9))
def test_every_request_is_counted_once_and_the_first_of_each_version_misses(
    name: str, asked: list[int], places: int
) -> None:
    tally = replayed(trace(asked), NodeShape(gpu_slots=1, places=places, disk_mib=45.0), policy=name)
    assert tally.requests == len(asked)
    assert tally.remote_loads >= len(set(asked))
    if places >= len(set(asked)):
        assert tally.misses == len(set(asked))


def test_policies_stand_side_by_side_in_a_table() -> None:
    policies = [make_policy(name, SETTINGS) for name in ("density", "lru")]
    lines = compare(trace([0, 1, 0]), policies, SETTINGS, NodeShape(gpu_slots=1, places=1))
    heading, density, lru = as_text(lines).splitlines()
    assert heading.split("  ")[0] == COLUMNS[0]
    assert density.split()[:4] == ["density", "3", "3", "100.00%"]
    assert lru.split()[0] == "lru"
    assert len(heading) == len(density) == len(lru)
    assert lines[0].figures["cost_ms"] == 300.0


def test_no_requests_are_no_misses() -> None:
    assert Tally().miss_rate == 0.0


def _heat_of(asked: Trace) -> Heat:
    heat = Heat(asked, SETTINGS)
    for at, version in zip(asked.at.tolist(), asked.version.tolist(), strict=True):
        heat.use(version, 1, at)
    return heat


def _time(seconds: float) -> datetime:
    return datetime(2026, 7, 4, tzinfo=UTC) + timedelta(seconds=seconds)


def _fact_of(asked: Trace, version: int, now: datetime) -> Facts:
    own = [_time(at) for at, one in zip(asked.at.tolist(), asked.version.tolist(), strict=True) if one == version]
    tenant = asked.tenant[version]
    of_tenant = [_time(at) for at, one in zip(asked.at, asked.version, strict=True) if asked.tenant[one] == tenant]
    return Facts(
        version_id=UUID(int=version),
        tenant=str(tenant),
        rate_per_h=_rate(own, now),
        tenant_rate_per_h=_rate(of_tenant, now),
        hits=len(own),
        last_used_at=own[-1],
        size_mib=float(asked.size_mib[version]),
        reload_ms=float(asked.remote_ms[version]),
        weight=float(asked.weight[tenant]),
        is_retiring=False,
        clock=0.0,
    )


def _rate(times: list[datetime], now: datetime) -> float:
    count, as_of = 0.0, times[0]
    for at in times:
        count, as_of = add_hits(count, as_of=as_of, hits=1, at=at, half_life=SETTINGS.half_life)
    count = decayed(count, as_of=as_of, now=now, half_life=SETTINGS.half_life)
    return rate_per_h(count, half_life=SETTINGS.half_life)
