"""Why a version was evicted, as each tenant may know it."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from rest_framework.test import APIClient

from cachecontrol.models import Eviction
from cachecontrol.services.demand import demand_version
from cachecontrol.states import DemandState, Outcome
from registry.actors import system_actor
from registry.models import Tenant, Version
from registry.services.tokens import create_platform_token, create_tenant_token
from registry.states import Role, Scope, TokenKind
from tests.factories.cachecontrol import backdate, gateway_actor, make_node, tell
from tests.factories.registry import make_adapter, make_person, make_tenant, make_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def victim(db: None) -> Version:
    """A version of acme that made room for one of other, with a third tenant's as the runner-up."""
    first = make_version(adapter=make_adapter(tenant=make_tenant(name="acme")))
    third, newcomer = (of_another_tenant(first, name) for name in ("third", "other"))
    node = make_node(base_revision=first.base_revision, name="n1", gpu_slots=1, cpu_slots=2)
    for version, idle_s in ((first, 7200), (third, 3600)):
        assert demand(version) is DemandState.LOADING
        residency = tell(node, version, Outcome.LOADED)
        backdate(residency, idle_s, "state_changed_at", "last_demand_at")
    demand(newcomer)
    return first


def of_another_tenant(like: Version, name: str) -> Version:
    adapter = make_adapter(tenant=make_tenant(name=name), base_model=like.adapter.base_model)
    return make_version(adapter=adapter, base_revision=like.base_revision)


def demand(version: Version) -> DemandState:
    return demand_version(actor=gateway_actor(), version_id=version.pk).state


def client(token: str) -> APIClient:
    made = APIClient()
    made.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return made


def member(tenant: Tenant) -> APIClient:
    made = create_tenant_token(
        actor=system_actor("test"),
        tenant=tenant,
        name="t",
        kind=TokenKind.PERSON,
        scopes=[Scope.READ],
        person_email=make_person(roles={tenant: [Role.VIEWER]}).email,
    )
    return client(made.text)


def admin() -> APIClient:
    person = make_person(is_platform_admin=True)
    made = create_platform_token(
        actor=system_actor("test"), name="a", kind=TokenKind.PERSON, scopes=[Scope.READ], person=person
    )
    return client(made.text)


def rows(caller: APIClient, **filters: str) -> list[dict[str, Any]]:
    answer = caller.get("/api/v1/evictions", filters)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_a_tenant_sees_its_own_evictions_without_the_names_of_others(victim: Version) -> None:
    (row,) = rows(member(victim.adapter.tenant))
    assert (row["tenant"], row["version"], row["node"], row["reason"]) == ("acme", victim.name, "n1", "room")
    assert (row["tier"], row["to_tier"], row["policy"]) == ("gpu", "disk", "density")
    assert row["score"] <= row["runner_up_score"], "equal scores: the one unused for longer goes"
    assert (row["runner_up"], row["asked_by"]) == (None, None)
    assert sum(row["factors"].values()) == pytest.approx(row["score"])


def test_the_platform_sees_all_of_it(victim: Version) -> None:
    (row,) = rows(admin(), node="n1", reason="room")
    assert row["runner_up"].startswith("third/")
    assert row["asked_by"] == "other"
    assert rows(admin(), tenant="third") == []


def test_another_tenant_sees_none_of_it(victim: Version) -> None:
    stranger = member(make_tenant())
    assert rows(stranger) == []
    path = f"/api/v1/tenants/acme/adapters/{victim.adapter.name}/versions/{victim.name}/placement"
    assert stranger.get(path).status_code == 404


def test_a_version_tells_how_it_stands(victim: Version) -> None:
    path = f"/api/v1/tenants/acme/adapters/{victim.adapter.name}/versions/{victim.name}/placement"
    found = member(victim.adapter.tenant).get(path).json()
    assert (found["requests_per_hour"], found["hits"]) == (0.0, 0)
    assert [(node["node"], node["desired"]) for node in found["nodes"]] == [("n1", "disk")]
    assert found["load"]["state"] == "placed"
    assert [row["reason"] for row in found["evictions"]] == ["room"]


def test_the_record_of_an_eviction_never_changes(victim: Version) -> None:
    with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
        Eviction.objects.update(reason="manual")
    with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
        Eviction.objects.all().delete()
