"""What gateways read of tenants' rules and of cache policies, as the database says it."""

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from cachecontrol.errors import PolicyNotPossible
from cachecontrol.models import TenantRules
from cachecontrol.services.policies import approve_policy, propose_policy, roll_back_policy
from cachecontrol.services.rules import set_serving_rules
from registry.actors import Actor
from registry.errors import InvalidInput, PreconditionFailed
from registry.models import BaseModel, Tenant
from tests.factories.registry import make_actor, make_base_revision, make_person, make_tenant

pytestmark = pytest.mark.django_db


def admin() -> Actor:
    return make_actor(make_person(is_platform_admin=True))


def rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def cold_rules() -> set[tuple[Any, ...]]:
    return set(rows("SELECT base_model, tenant, on_cold, wait_s, token_ms FROM routing_cold_rules"))


def noted() -> list[tuple[str, str]]:
    return rows("SELECT kind, key FROM routing_change WHERE kind IN ('rules', 'cold_rules') ORDER BY kind, key")


@pytest.fixture
def tenant(db: None) -> Tenant:
    return make_tenant(name="acme")


@pytest.fixture
def base(db: None) -> BaseModel:
    return make_base_revision(base_model=BaseModel.objects.create(name="smollm2")).base_model


def put_in_force(base: BaseModel, text: str) -> None:
    policy = propose_policy(actor=admin(), base_model=base, text=f"base_model: {base.name}\n{text}")
    approve_policy(actor=admin(), policy=policy, digest=policy.digest)


def test_the_gateway_reads_what_was_set_and_is_told(tenant: Tenant, base: BaseModel) -> None:
    set_serving_rules(
        actor=admin(),
        tenant=tenant,
        requests_per_minute=60,
        gpu_ms_per_minute=5000,
        base_models=["smollm2", "smollm2"],
        allows_shadow=False,
    )
    assert rows("SELECT * FROM routing_rules") == [("acme", 60, None, None, 5000, ["smollm2"], False)]
    assert set(noted()) == {("rules", "acme")}


def test_a_change_on_top_of_a_stale_look_is_refused(tenant: Tenant) -> None:
    seen = TenantRules(tenant=tenant)
    set_serving_rules(actor=admin(), tenant=tenant, requests_per_minute=60, expected=seen)
    with pytest.raises(PreconditionFailed):
        set_serving_rules(actor=admin(), tenant=tenant, requests_per_minute=30, expected=seen)


@pytest.mark.parametrize("limit", [0, -1, 2**31])
def test_a_limit_that_is_none_is_refused_and_names_its_field(tenant: Tenant, limit: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        set_serving_rules(actor=admin(), tenant=tenant, concurrent_requests=limit)
    assert caught.value.field == "concurrent_requests"


def test_the_database_refuses_a_limit_of_nothing(tenant: Tenant) -> None:
    for field in ("requests_per_minute", "tokens_per_minute", "concurrent_requests", "gpu_ms_per_minute"):
        with pytest.raises(IntegrityError), transaction.atomic():
            TenantRules.objects.create(tenant=tenant, **{field: 0})


def test_without_a_policy_nothing_is_said_of_cold_requests(base: BaseModel) -> None:
    assert cold_rules() == set()


def test_the_policy_in_force_says_it_for_everybody_and_for_those_it_names(base: BaseModel) -> None:
    put_in_force(
        base,
        "sla_classes: {standard: {wait_s: 5}, gold: {on_cold: base, token_ms: 40, wait_s: 0.5}}\n"
        "tenants: {acme: {sla: gold}}\n",
    )
    assert cold_rules() == {("smollm2", "", "wait", 5.0, None), ("smollm2", "acme", "base", 0.5, 40.0)}
    assert ("cold_rules", "") in noted()


def test_a_roll_back_to_the_defaults_takes_it_back(base: BaseModel) -> None:
    put_in_force(base, "sla_classes: {standard: {on_cold: refuse}}\n")
    assert cold_rules() == {("smollm2", "", "refuse", 30.0, None)}
    roll_back_policy(actor=admin(), base_model=base, to=0)
    assert cold_rules() == set()


def test_a_policy_from_before_the_keys_means_their_defaults(base: BaseModel) -> None:
    # What it says is written out when it is proposed; the guard forbids to take a key out of it afterwards.
    with connection.cursor() as cursor:
        put_in_force(base, "")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE cachecontrol_cachepolicy DISABLE TRIGGER cache_policy_guard")
        cursor.execute(
            "UPDATE cachecontrol_cachepolicy SET document = document #- '{sla_classes,standard,on_cold}'"
            " #- '{sla_classes,standard,token_ms}'"
        )
    assert cold_rules() == {("smollm2", "", "wait", 30.0, None)}


def test_a_policy_refuses_what_is_no_rule(base: BaseModel) -> None:
    for text in ("sla_classes: {standard: {on_cold: perhaps}}", "sla_classes: {standard: {token_ms: 0}}"):
        with pytest.raises((InvalidInput, PolicyNotPossible)):
            put_in_force(base, text)
