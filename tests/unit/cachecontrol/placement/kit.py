"""Nodes and versions with little to say, and what Hypothesis makes of them."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from cachecontrol.engines import CAPABILITIES
from cachecontrol.placement.facts import (
    PlannedNode,
    PlannedVersion,
    PlanSettings,
    TenantLimits,
)
from cachecontrol.states import EngineKind

BASE = "b" * 64
NODE = PlannedNode(name="n1", base_digest=BASE, max_rank=64, gpu_slots=2, hot_limit=2, places=4)
VERSION = PlannedVersion(
    version_id=UUID(int=1), tenant="acme", base_digest=BASE, rank=16, size_bytes=100, rate_per_h=10.0, keep=math.log(10)
)


def node(name: str, **facts: Any) -> PlannedNode:
    return replace(NODE, name=name, **facts)


def version(number: int, *, rate: float = 10.0, **facts: Any) -> PlannedVersion:
    keep = math.log(max(rate, 1e-3))
    return replace(VERSION, **{"version_id": UUID(int=number), "rate_per_h": rate, "keep": keep, **facts})


def ids(*numbers: int) -> frozenset[UUID]:
    return frozenset(UUID(int=number) for number in numbers)


def homes(held: Mapping[str, frozenset[UUID]], number: int) -> set[str]:
    return {name for name, there in held.items() if UUID(int=number) in there}


def _with_identity(version: PlannedVersion, number: int) -> PlannedVersion:
    """What never changes of a version follows from its id."""
    return replace(
        version,
        tenant=("acme", "bolt", "cent")[number % 3],
        base_digest=(BASE, BASE, BASE, "c" * 64)[number % 4],
        rank=(8, 16, 64)[number // 2 % 3],
        size_bytes=1 + number * 37 % 200,
    )


ranks = st.sampled_from([8, 16, 64])
nodes = st.builds(
    PlannedNode,
    name=st.sampled_from([f"n{number}" for number in range(8)]),
    base_digest=st.sampled_from([BASE, "c" * 64]),
    max_rank=ranks,
    gpu_slots=st.integers(1, 3),
    hot_limit=st.just(1),
    places=st.integers(1, 5),
    cpu_bytes=st.none() | st.integers(0, 400),
    disk_bytes=st.none() | st.integers(0, 600),
    is_up=st.sampled_from([True, True, True, False]),
    is_cordoned=st.sampled_from([False, False, True]),
    is_draining=st.sampled_from([False, False, False, True]),
    capabilities=st.sampled_from([CAPABILITIES[kind] for kind in EngineKind]),
    requests_per_h=st.none() | st.floats(10, 1000),
).map(lambda node: replace(node, hot_limit=max(1, node.gpu_slots - 1)))
versions = st.builds(
    PlannedVersion,
    version_id=st.integers(1, 24).map(lambda number: UUID(int=number)),
    tenant=st.just(""),
    base_digest=st.just(BASE),
    rank=st.just(8),
    size_bytes=st.just(1),
    rate_per_h=st.just(0.0) | st.floats(0, 300),
    keep=st.floats(-10, 10),
    weight=st.sampled_from([1.0, 2.0, 4.0]),
    is_pinned=st.sampled_from([False, False, False, True]),
    min_replicas=st.sampled_from([0, 0, 0, 2]),
    is_wanted_on_release=st.sampled_from([False, False, True]),
    unwanted_on=st.frozensets(st.sampled_from([f"n{number}" for number in range(8)]), max_size=2),
).map(lambda version: _with_identity(version, version.version_id.int))
fleets = st.lists(nodes, max_size=8, unique_by=lambda node: node.name)
catalogues = st.lists(versions, max_size=24, unique_by=lambda version: version.version_id)
limits = st.builds(
    TenantLimits,
    hot=st.none() | st.integers(0, 2),
    cpu_bytes=st.none() | st.integers(0, 500),
    disk_bytes=st.none() | st.integers(0, 700),
    places_per_node=st.none() | st.integers(1, 2),
    hot_floor=st.integers(0, 1),
    cpu_floor_bytes=st.sampled_from([0, 150]),
    disk_floor_bytes=st.sampled_from([0, 250]),
)
settings = st.builds(
    PlanSettings,
    requests_per_h_per_node=st.sampled_from([20.0, 100.0, 7200.0]),
    max_replicas=st.integers(1, 3),
    consolidates=st.booleans(),
    disk_copies=st.integers(1, 2),
    limits=st.dictionaries(st.sampled_from(["acme", "bolt"]), limits, max_size=2),
)
