"""Ceilings hold at every moment, whatever demands, plans, operators, sweeps and reports do at once."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest
from django.utils import timezone

from cachecontrol.errors import NoCapacity
from cachecontrol.models import Residency, VersionHeat
from cachecontrol.policies import quota_usage
from cachecontrol.quotas import Resource
from cachecontrol.services.demand import demand_version
from cachecontrol.services.loads.turns import serve_queues
from cachecontrol.services.planning.expiry import expire_residents
from cachecontrol.services.planning.plan import plan_pool
from cachecontrol.services.reconcile import reconcile_version
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import Desired, Outcome
from registry import dispatch
from registry.errors import NotFound
from registry.models import Version
from tests.concurrency.racing import errors_in, race
from tests.factories.cachecontrol import gateway_actor, make_node, make_policy, tell
from tests.factories.registry import make_actor, make_adapter, make_person, make_tenant, make_version

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent", "signer")]

_POLICY: Final = """\
loading: {min_residency_s: 0}
quotas: {default: {gpu_slots: {ceiling: 1}, cpu_mb: {ceiling: 1}}}
"""
_CEILINGS: Final = {Resource.GPU_SLOTS: 1, Resource.CPU_BYTES: 10**6}
_ENDS: Final = {"gpu": Outcome.LOADED, "disk": Outcome.ON_DISK, "absent": Outcome.EVICTED}


class Pool:
    """Two nodes, and a few versions of some tenants whose ceilings are lower than what the nodes hold."""

    def __init__(self, *, tenants: int, each: int) -> None:
        first = make_adapter()
        base = make_version(adapter=first).base_revision
        others = [make_adapter(tenant=make_tenant(), base_model=first.base_model) for _number in range(tenants - 1)]
        adapters = [first, *others]
        self.base_model_id, self.digest = base.base_model_id, base.digest
        self.versions = [
            make_version(adapter=adapter, base_revision=base, files={"adapter_model.safetensors": bytes(300_000)})
            for adapter in adapters
            for _number in range(each)
        ]
        self.nodes = [make_node(base_revision=base, gpu_slots=2, cpu_slots=4) for _number in range(2)]
        admin = make_actor(make_person(is_platform_admin=True))
        make_policy(base_model=first.base_model, more=_POLICY, approver=admin)
        for version in self.versions:
            VersionHeat.objects.create(version=version, rate=5.0, as_of=timezone.now(), hits=5)

    def breaches(self) -> list[str]:
        """What is above its ceiling now."""
        used = quota_usage(base_model_id=self.base_model_id)
        return [
            f"{tenant}: {amounts[resource]} {resource}"
            for tenant, amounts in used.items()
            for resource, ceiling in _CEILINGS.items()
            if amounts[resource] > ceiling
        ]


def acts_on(pool: Pool, chance: random.Random) -> list[Callable[[], object]]:
    """What may happen to a pool."""
    version, node = chance.choice(pool.versions), chance.choice(pool.nodes)
    return [
        lambda: demand_version(actor=gateway_actor(), version_id=version.pk),
        lambda: _tell_ends(version),
        lambda: plan_pool(pool.digest),
        lambda: _heat(version, chance.random() * 100),
        lambda: warm_version(actor=make_actor(), node=node, version=version),
        lambda: evict_version(actor=make_actor(), node=node, version=version, to=Desired.DISK),
        lambda: reconcile_version(version_id=version.pk),
        serve_queues,
        expire_residents,
    ]


def _tell_ends(version: Version) -> None:
    for residency in Residency.objects.filter(version=version).select_related("node"):
        tell(residency.node, version, _ENDS[residency.desired])


def _heat(version: Version, rate: float) -> None:
    VersionHeat.objects.filter(version=version).update(rate=rate, as_of=timezone.now())


def _keep_busy(pool: Pool, seed: int, *, until: float) -> list[str]:
    chance = random.Random(seed)
    while time.monotonic() < until:
        # No place, or nothing to evict: answers like any other.
        with suppress(NoCapacity, NotFound):
            chance.choice(acts_on(pool, chance))()
    return pool.breaches()


def _watch(pool: Pool, *, until: float) -> list[str]:
    found: list[str] = []
    while time.monotonic() < until:
        found += pool.breaches()
    return found


@pytest.mark.parametrize("seconds", [1.5, pytest.param(30, marks=pytest.mark.e2e)])
def test_no_tenant_is_above_a_ceiling_at_any_moment(
    seconds: float, monkeypatch: pytest.MonkeyPatch, store: object
) -> None:
    monkeypatch.setattr(dispatch, "send_to_node", lambda _node, _task, _command: None)
    pool = Pool(tenants=3, each=4)
    until = time.monotonic() + seconds
    busy = [lambda seed=seed: _keep_busy(pool, seed, until=until) for seed in range(4)]
    found = race(lambda: _watch(pool, until=until), *busy)
    assert errors_in(found) == []
    assert found == [[]] * 5
    assert Residency.objects.filter(is_hot=True).exists()
