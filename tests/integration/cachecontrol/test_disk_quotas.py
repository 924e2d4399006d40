"""The bytes that tenants have on disks: ceilings for what is brought there, floors for what is pushed out."""

from typing import Any

import pytest
from django.utils import timezone

from cachecontrol.errors import NoCapacity
from cachecontrol.models import Eviction, Node, Residency, VersionHeat
from cachecontrol.placement.changes import Move, Step
from cachecontrol.policies import quota_usage
from cachecontrol.quotas import Resource
from cachecontrol.services.demand import demand_version
from cachecontrol.services.loads.attempts import Demand
from cachecontrol.services.loads.turns import serve_queues
from cachecontrol.services.planning.expiry import expire_residents
from cachecontrol.services.planning.facts import read_pool
from cachecontrol.services.planning.moves import make_move
from cachecontrol.services.residencies import warm_version
from cachecontrol.states import DemandState, Outcome
from registry.models import Version
from tests.factories.cachecontrol import beat, gateway_actor, make_node, make_policy, put_on_disk, tell
from tests.factories.registry import make_actor, make_adapter, make_person, make_tenant, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


def sized(like: Version, kilobytes: int, *, of_another: bool = False) -> Version:
    """A version of so many thousand bytes, of the same tenant or of a new one."""
    adapter = make_adapter(tenant=make_tenant(), base_model=like.adapter.base_model) if of_another else like.adapter
    files = {"adapter_model.safetensors": bytes(kilobytes * 1000)}
    return make_version(adapter=adapter, base_revision=like.base_revision, files=files)


def in_force(version: Version, *, more: str = "", **bounds: int) -> None:
    """A policy with such bounds in megabytes for the version's tenant, and for nobody else."""
    amounts = ", ".join(f"{name}: {amount}" for name, amount in bounds.items())
    quota = f"quotas: {{tenants: {{{version.adapter.tenant.name}: {{disk_mb: {{{amounts}}}}}}}}}\n"
    admin = make_actor(make_person(is_platform_admin=True))
    make_policy(base_model=version.base_revision.base_model, more=quota + more, approver=admin)


def demand(version: Version, **facts: Any) -> Demand:
    return demand_version(actor=gateway_actor(), version_id=version.pk, **facts)


def wanted(*versions: Version) -> list[str]:
    known = dict(Residency.objects.values_list("version", "desired"))
    return [known.get(version.pk, "nowhere") for version in versions]


def bytes_of(version: Version) -> int:
    used = quota_usage(base_model_id=version.base_revision.base_model_id)
    return used[version.adapter.tenant.name][Resource.DISK_BYTES]


@pytest.fixture
def three(version: Version) -> list[Version]:
    return [sized(version, 400) for _number in range(3)]


def test_a_tenant_at_its_ceiling_gives_up_its_own_longest_unused_files_for_what_is_asked_for(
    node: Node, version: Version, three: list[Version]
) -> None:
    in_force(version, ceiling=1)
    other = sized(version, 400, of_another=True)
    put_on_disk(node, other, idle_s=9000)
    for kept, idle_s in zip(three[:2], (50, 4000), strict=True):
        put_on_disk(node, kept, idle_s=idle_s)
    assert demand(three[2]).state is DemandState.LOADING
    assert wanted(*three, other) == ["disk", "absent", "gpu", "disk"]
    assert bytes_of(version) <= 10**6
    gone = Eviction.objects.get(reason="quota")
    assert (gone.version, gone.tier, gone.to_tier) == (three[1], "disk", "remote")


def test_what_is_on_the_disk_already_takes_no_more_of_it(node: Node, version: Version, three: list[Version]) -> None:
    in_force(version, ceiling=1)
    for kept in three[:2]:
        put_on_disk(node, kept)
    assert demand(three[0]).state is DemandState.LOADING
    assert wanted(*three[:2]) == ["gpu", "disk"]


def test_where_a_tenants_own_files_are_all_in_use_it_is_told_that_its_quota_is_used_up(
    node: Node, version: Version, three: list[Version]
) -> None:
    in_force(version, ceiling=1)
    for kept in three[:2]:
        warm_version(actor=make_actor(), node=node, version=kept)
        tell(node, kept, Outcome.LOADED)
    found = demand(three[2])
    assert (found.state, found.code) == (DemandState.SHED, "over_quota")
    assert "disk" in found.message
    with pytest.raises(NoCapacity, match="disk"):
        warm_version(actor=make_actor(), node=node, version=three[2])
    assert wanted(*three) == ["gpu", "gpu", "nowhere"]


def test_nothing_is_given_up_for_what_would_not_fit_even_then(
    node: Node, version: Version, three: list[Version]
) -> None:
    in_force(version, ceiling=1)
    put_on_disk(node, three[0])
    assert demand(sized(version, 1200)).state is DemandState.SHED
    assert wanted(three[0]) == ["disk"]


def test_neither_the_plan_nor_the_queue_brings_files_to_disks_above_a_ceiling(
    version: Version, three: list[Version]
) -> None:
    node = make_node(base_revision=version.base_revision, name="n", gpu_slots=1, cpu_slots=2)
    in_force(version, ceiling=1)
    for busy in three[:2]:
        warm_version(actor=make_actor(), node=node, version=busy)
        tell(node, busy, Outcome.LOADED)
    pool = read_pool(version.base_revision.digest)
    assert pool is not None
    assert not make_move(Move(Step.FETCH, "n", three[2].pk), pool=pool)
    assert not make_move(Move(Step.LOAD, "n", three[2].pk), pool=pool)
    demand(three[2])
    serve_queues()
    assert wanted(three[2]) == ["nowhere"]


def test_a_full_disk_pushes_nobody_below_a_floor(version: Version) -> None:
    node = make_node(base_revision=version.base_revision, disk_bytes=2_000_000)
    in_force(version, floor=1, more="adapter_cache: {disk_cache: {high_water: 0.9, low_water: 0.6}}\n")
    own = [sized(version, 450) for _number in range(2)]
    others = [sized(version, 450, of_another=True) for _number in range(3)]
    for kept in own:
        put_on_disk(node, kept, idle_s=90_000)
    for kept in others:
        put_on_disk(node, kept)
        VersionHeat.objects.create(version=kept, rate=50.0, as_of=timezone.now(), hits=50)
    assert expire_residents() >= 1
    assert wanted(*own) == ["disk", "disk"], "worth least, and guaranteed"
    assert "absent" in wanted(*others)


def test_what_a_tenant_has_beyond_its_floor_is_pushed_out_like_any_other(version: Version) -> None:
    node = make_node(base_revision=version.base_revision, disk_bytes=2_000_000)
    in_force(version, floor=1, more="adapter_cache: {disk_cache: {high_water: 0.9, low_water: 0.85}}\n")
    own = [sized(version, 480) for _number in range(4)]
    for number, kept in enumerate(own):
        put_on_disk(node, kept, idle_s=9000 - number)
    expire_residents()
    assert wanted(*own).count("disk") == 3


def test_a_node_is_told_whose_files_make_room_for_nobody(version: Version) -> None:
    node = make_node(base_revision=version.base_revision)
    in_force(version, floor=1)
    own = [sized(version, 450) for _number in range(3)]
    for number, kept in enumerate(own):
        put_on_disk(node, kept, idle_s=9000 - number)
    names = [kept.engine_name for kept in own]
    told = beat(node, on_disk=tuple(names)).limits
    assert told["guaranteed"] == sorted(names), "one of them is beyond the floor, and larger than what is beyond it"
    put_on_disk(node, sized(version, 450), idle_s=1)
    assert beat(node, on_disk=tuple(names)).limits["guaranteed"] != sorted(names)
    assert "guaranteed" not in beat(node, unchanged=True).limits


def test_a_node_that_may_run_full_is_told_what_to_do_without_first(version: Version) -> None:
    node = make_node(base_revision=version.base_revision, disk_bytes=2_000_000)
    hot, large, cold = (sized(version, kilobytes) for kilobytes in (100, 900, 100))
    for number, kept in enumerate((hot, large, cold)):
        put_on_disk(node, kept, idle_s=9000 - number)
    for kept, rate in ((hot, 9.0), (large, 2.0), (cold, 1.0)):
        VersionHeat.objects.create(version=kept, rate=rate, as_of=timezone.now(), last_used_at=timezone.now())
    names = tuple(kept.engine_name for kept in (hot, large, cold))
    assert beat(node, on_disk=names, disk_used_bytes=900_000).limits["expendable"] == []
    told = beat(node, on_disk=names, disk_used_bytes=1_100_000).limits["expendable"]
    assert told == [large.engine_name, cold.engine_name, hot.engine_name], "twice as often, but nine times as large"
    assert "expendable" not in beat(node, unchanged=True).limits
