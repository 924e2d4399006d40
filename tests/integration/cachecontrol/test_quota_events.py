"""A load that a quota refuses is told in the tenant's audit log, and never more than once a minute for a resource."""

from datetime import timedelta

import pytest
from django.utils import timezone

from cachecontrol.models import Lease, Node
from cachecontrol.services.demand import demand_version
from cachecontrol.services.loads.attempts import Demand
from cachecontrol.states import DemandState
from registry.models import AuditRecord, Version
from tests.factories.cachecontrol import gateway_actor, put_in_force
from tests.factories.registry import make_adapter, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


def demand(version: Version) -> Demand:
    return demand_version(actor=gateway_actor(), version_id=version.pk)


def big(version: Version, *, tenants_own: bool = True) -> Version:
    adapter = version.adapter if tenants_own else make_adapter(base_model=version.adapter.base_model)
    files = {"adapter_model.safetensors": bytes(1_200_000)}
    return make_version(adapter=adapter, base_revision=version.base_revision, files=files)


def told() -> list[tuple[str, str]]:
    found = AuditRecord.objects.filter(action="tenant:quota:refuse").order_by("pk")
    return list(found.values_list("chain", "after__resource"))


def test_a_refusal_is_told_with_what_was_short_of_and_for_which_version(node: Node, version: Version) -> None:
    put_in_force(version, "quotas: {default: {cpu_mb: {ceiling: 1}}}\n")
    refused = big(version)
    found = demand(refused)
    assert (found.state, found.over) == (DemandState.SHED, ("cpu_bytes",))
    record = AuditRecord.objects.get(action="tenant:quota:refuse")
    tenant = version.adapter.tenant.name
    assert (record.chain, record.object["id"], record.reason) == (tenant, f"{tenant}/cpu_bytes", found.message)
    assert record.after == {
        "resource": "cpu_bytes",
        "version": str(refused),
        "base_model": version.adapter.base_model.name,
    }


def test_however_many_are_refused_the_log_is_told_once_a_minute_of_each_tenant(node: Node, version: Version) -> None:
    put_in_force(version, "quotas: {default: {cpu_mb: {ceiling: 1}}}\n")
    other = big(version, tenants_own=False)
    for refused in (big(version), big(version), other, other):
        assert demand(refused).state is DemandState.SHED
    once = [(version.adapter.tenant.name, "cpu_bytes"), (other.adapter.tenant.name, "cpu_bytes")]
    assert told() == once
    Lease.objects.filter(name__startswith="tell of the quota").update(held_until=timezone.now() - timedelta(seconds=1))
    demand(other)
    assert told() == [*once, once[1]]


def test_a_part_of_the_queue_that_is_full_is_told_and_a_full_queue_is_not(node: Node, version: Version) -> None:
    more = "loading: {queue_limit: 2, concurrent_loads_per_node: 1}\nquotas: {default: {queue_share: 0.5}}\n"
    put_in_force(version, more)
    demand(version)
    own = [make_version(adapter=version.adapter) for _each in range(2)]
    assert [demand(each).state for each in own] == [DemandState.QUEUED, DemandState.SHED]
    assert told() == [(version.adapter.tenant.name, "queue_share")]
    others = [make_version(adapter=make_adapter(base_model=version.adapter.base_model)) for _each in range(2)]
    found = [demand(each) for each in others]
    assert [each.state for each in found] == [DemandState.QUEUED, DemandState.SHED]
    assert found[1].over == ()
    assert len(told()) == 1


def test_what_is_taken_in_is_not_told(node: Node, version: Version) -> None:
    put_in_force(version, "quotas: {default: {cpu_mb: {ceiling: 1}}}\n")
    assert demand(version).state is DemandState.LOADING
    assert told() == []
