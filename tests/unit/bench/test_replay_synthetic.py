import numpy as np

from bench.replay.raw import RawWeightedLru
from bench.replay.synthetic import Fleet, day
from cachecontrol.replay.simulate import NodeShape, replay
from cachecontrol.scoring.make import make_policy
from cachecontrol.scoring.settings import ScoringSettings

SMALL = Fleet(versions=100, tenants=10, requests=4000, bursts=10, roll_outs=10)


def test_a_day_is_the_same_each_time_and_as_large_as_was_asked_for() -> None:
    first, second = day(SMALL), day(SMALL)
    assert first.at.tolist() == second.at.tolist()
    assert first.version.tolist() == second.version.tolist()
    assert (first.total_requests, first.versions, len(first.weight)) == (4000, 110, 10)
    assert (np.diff(first.at) >= 0).all()


def test_a_replaced_version_is_hardly_asked_for_any_more() -> None:
    trace = day(SMALL)
    retired = trace.at >= trace.retires_at[trace.version]
    assert 0 < retired.sum() < 0.02 * len(retired)


def test_density_costs_less_than_lru_and_raw_units_miss_more_often() -> None:
    trace, settings, shape = day(SMALL), ScoringSettings(), NodeShape(gpu_slots=4, places=12)
    density, lru = (replay(trace, make_policy(name, settings), settings, shape) for name in ("density", "lru"))
    assert density.cost_ms < lru.cost_ms
    assert replay(trace, RawWeightedLru(settings), settings, shape).misses > lru.misses
