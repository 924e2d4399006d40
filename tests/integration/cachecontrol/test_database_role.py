"""Web and workers run as a role that owns nothing: everything they do has to work with its grants alone."""

from collections.abc import Iterator
from datetime import UTC, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from cachecontrol.models import Eviction, LoadRequest, Node, Residency, TenantRules
from cachecontrol.policies import active_policy
from cachecontrol.services.demand import demand_version
from cachecontrol.services.estimates import estimate_tiers
from cachecontrol.services.heat import count_requests
from cachecontrol.services.loads.turns import serve_queues
from cachecontrol.services.nodes import rotate_node_token
from cachecontrol.services.planning.expiry import expire_residents
from cachecontrol.services.planning.plan import plan_pools
from cachecontrol.services.planning.predictions import predict_demand
from cachecontrol.services.policies import decline_policy, roll_back_policy
from cachecontrol.services.reconcile import sweep_residencies
from cachecontrol.services.requests.retention import tend_request_records
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.services.rules import set_serving_rules
from cachecontrol.states import Outcome
from deploy.embedded.postgres import APP
from registry.actors import system_actor
from registry.models import Version
from registry.services.withdrawals import revoke_version
from releases.services.aliases import roll_back_alias
from tests.factories.cachecontrol import backdate, gateway_actor, make_node, make_policy, report, tell
from tests.factories.registry import (
    make_actor,
    make_adapter,
    make_base_revision,
    make_person,
    make_tenant,
    make_version,
)
from tests.factories.releases import point_alias

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sent")]


@pytest.fixture
def as_application(postgres: Any, db: None) -> Iterator[None]:
    """Django's connection belongs to the application's role while the test runs."""
    owner = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    connection.close()
    connection.settings_dict.update(USER=APP, PASSWORD=postgres.passwords.of(APP))
    yield
    connection.close()
    connection.settings_dict.update(owner)


def test_the_applications_role_may_do_all_that_releases_and_cache_control_do(
    as_application: None, queues: Any, settings: Any
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == (APP,)
    adapter = make_adapter()
    first, second = make_version(adapter=adapter), make_version(adapter=adapter)
    node = make_node(base_revision=first.base_revision, gpu_slots=1, cpu_slots=1)
    rotate_node_token(actor=make_actor(), node=node)
    node.refresh_from_db()
    move_back_and_forth(first, second)
    run_a_life(node, first, settings.DRAIN_S)
    Node.objects.filter(pk=node.pk).update(last_seen_at=timezone.now() - timedelta(hours=1))
    sweep_residencies()
    node.refresh_from_db()
    assert node.status == "lost"
    assert queues.tasks == ["node.warm", "node.evict"]


def test_the_applications_role_may_make_and_drop_the_days_of_request_records(
    as_application: None, settings: Any
) -> None:
    settings.REQUEST_RECORD_DAYS = 1
    over = (timezone.now() - timedelta(days=3)).astimezone(UTC).date()
    with connection.cursor() as cursor:
        cursor.execute("SELECT gateway_records_make_day('gateway_shadow', %s)", [over])
    tend_request_records(actor=system_actor("retention"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [f"gateway_shadow_{over:%Y%m%d}"])
        assert cursor.fetchone() == (None,)


def test_the_applications_role_may_say_what_a_tenant_may_ask_for(as_application: None) -> None:
    tenant = make_tenant(name="acme")
    for limit in (60, 30):
        set_serving_rules(actor=make_actor(), tenant=tenant, requests_per_minute=limit)
    assert TenantRules.objects.get().requests_per_minute == 30


def move_back_and_forth(first: Version, second: Version) -> None:
    point_alias(name="support", version=first)
    alias = point_alias(name="support", version=second)
    assert roll_back_alias(actor=make_actor(), alias=alias).version == first


def run_a_life(node: Node, version: Version, drain_s: float) -> None:
    """Demanded, loaded, evicted, revoked and forgotten."""
    report(node)
    demand_version(actor=gateway_actor(), version_id=version.pk)
    warm_version(actor=make_actor(), node=node, version=version)
    sweep_residencies()
    tell(node, version, Outcome.LOADED)
    evict_version(actor=make_actor(), node=node, version=version)
    sweep_residencies()
    backdate(Residency.objects.get(), drain_s + 1, "drain_until")
    sweep_residencies()
    tell(node, version, Outcome.EVICTED)
    revoke_version(actor=make_actor(), version=version, reason="poisoned")
    sweep_residencies()
    assert not Residency.objects.exists()


def test_the_applications_role_may_do_all_that_cache_policies_do(as_application: None) -> None:
    base = make_base_revision().base_model
    ada, ben = (make_actor(make_person(is_platform_admin=True)) for _ in range(2))
    make_policy(base_model=base, by=ada, approver=ben)
    make_policy(base_model=base, more="loading: {queue_limit: 7}", by=ada, approver=ben)
    decline_policy(
        actor=ben, policy=make_policy(base_model=base, more="pins: []\nreplicas: {max: 2}", by=ada), reason="no"
    )
    roll_back_policy(actor=ben, base_model=base, to=1)
    assert active_policy(base.pk).number == 1


def test_the_applications_role_may_do_all_that_the_load_queue_heat_and_plans_do(as_application: None) -> None:
    adapter = make_adapter()
    versions = [make_version(adapter=adapter) for _number in range(3)]
    limits = "loading: {concurrent_loads_per_node: 1, min_residency_s: 0}\nprewarm: {predicted: true}\n"
    ada, ben = (make_actor(make_person(is_platform_admin=True)) for _ in range(2))
    make_policy(base_model=adapter.base_model, more=limits, by=ada, approver=ben)
    node = make_node(base_revision=versions[0].base_revision, gpu_slots=1, cpu_slots=1)
    for version in versions:
        demand_version(actor=gateway_actor(), version_id=version.pk, in_flight=[version.pk])
    tell(node, versions[0], Outcome.LOADED)
    serve_queues()
    assert Eviction.objects.count() == 1
    LoadRequest.objects.exclude(ended_at=None).update(ended_at=timezone.now() - timedelta(days=1))
    serve_queues()
    count_requests()
    predict_demand()
    estimate_tiers()
    expire_residents()
    plan_pools()
