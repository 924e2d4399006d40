"""What a tenant used, and the requests of the fleet as a trace."""

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from cachecontrol.models import Residency
from cachecontrol.replay.formats import read_trace
from cachecontrol.requests import traces, usage
from registry.actors import system_actor
from registry.models import Tenant, Version
from registry.services.tokens import create_platform_token, create_tenant_token
from registry.states import Role, Scope, TokenKind
from tests.factories.cachecontrol import make_node
from tests.factories.registry import make_adapter, make_person, make_tenant, make_version
from tests.factories.requests import make_request

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPAN = {"since": "2026-03-01T00:00:00Z", "until": "2026-03-03T00:00:00Z"}


@pytest.fixture
def version(db: None) -> Version:
    return make_version(adapter=make_adapter(tenant=make_tenant(name="acme"), name="tone"))


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


@pytest.fixture
def admin(db: None) -> APIClient:
    person = make_person(is_platform_admin=True)
    made = create_platform_token(
        actor=system_actor("test"), name="a", kind=TokenKind.PERSON, scopes=[Scope.READ], person=person
    )
    return client(made.text)


@pytest.fixture
def used(version: Version) -> Callable[..., Any]:
    """What acme used, as one of its viewers is told."""
    viewer = member(version.adapter.tenant)
    return lambda **asked: viewer.get("/api/v1/tenants/acme/usage", SPAN | asked).json()


def test_usage_is_told_by_alias_with_what_it_cost(version: Version, used: Callable[..., Any]) -> None:
    for ttft in range(1, 101):
        make_request(version, at=AT, ttft_ms=ttft, engine_ms=50, prompt_tokens=7, completion_tokens=3)
    make_request(version, at=AT, alias="beta", tier="remote", status=503, error_kind="no_capacity", ttft_ms=0)
    make_request(version, at=AT, alias="beta", tier="cpu", status=499, error_kind="client_gone", fallback="base")
    make_request(version, at=AT, is_shadow=True, engine_ms=40, ttft_ms=999)
    found = used()
    total, (prod, beta) = found["total"], found["groups"]
    assert (prod["name"], prod["requests"], prod["failed"], prod["engine_ms"]) == ("prod", 100, 0, 5000)
    assert (prod["prompt_tokens"], prod["completion_tokens"]) == (700, 300)
    assert prod["ttft_ms"] == {"p50": 50, "p95": 95, "p99": 99}
    assert (prod["shadow_requests"], prod["shadow_engine_ms"]) == (1, 40)
    assert (beta["requests"], beta["failed"], beta["fallbacks"]) == (2, 1, 1)
    assert (beta["tiers"], beta["gpu_hit_rate"]) == ({"gpu": 0, "cpu": 1, "disk": 0, "remote": 1}, 0)
    assert beta["ttft_ms"] == {"p50": 10, "p95": 10, "p99": 10}
    assert (total["requests"], total["tiers"]["gpu"], total["ttft_ms"]["p99"]) == (102, 100, 99)


def test_usage_is_told_by_version_and_by_day(version: Version, used: Callable[..., Any]) -> None:
    make_request(version, at=AT)
    make_request(None, at=AT + timedelta(hours=12), version_id=None, tier="", ttft_ms=0)
    names = [(group["name"], group["requests"]) for group in used(by="version")["groups"]]
    assert sorted(names) == [("", 1), (f"tone@{version.name}", 1)]
    assert [group["name"] for group in used(by="day")["groups"]] == ["2026-03-01", "2026-03-02"]


def test_usage_is_of_the_period_and_of_the_tenant_alone(version: Version, used: Callable[..., Any]) -> None:
    make_request(version, at=AT - timedelta(days=1))
    make_request(version, at=datetime(2026, 3, 3, tzinfo=UTC))
    make_request(None, at=AT, tenant="other")
    found = used()
    assert (found["total"]["requests"], found["total"]["ttft_ms"], found["groups"]) == (0, None, [])
    make_request(version, at=datetime(2026, 3, 1, tzinfo=UTC))
    assert used()["total"]["requests"] == 1


def test_of_very_many_groups_the_costliest_are_told(
    version: Version, used: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "MOST_GROUPS", 2)
    for number in range(4):
        make_request(version, at=AT, alias=f"a{number}", engine_ms=number)
    found = used()
    assert [group["name"] for group in found["groups"]] == ["a3", "a2"]
    assert (found["left_out"], found["total"]["requests"]) == (2, 4)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"since": "2026-03-03T00:00:00Z", "until": "2026-03-01T00:00:00Z"}, "since"),
        ({"since": "2025-03-03T00:00:00Z"}, "since"),
        ({"by": "node"}, "by"),
        ({"since": "yesterday"}, "since"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(version: Version, asked: dict[str, str], field: str) -> None:
    answer = member(version.adapter.tenant).get("/api/v1/tenants/acme/usage", SPAN | asked)
    assert answer.status_code == 400
    assert field in str(answer.json())


def test_a_question_that_takes_too_long_is_ended_with_what_to_do(
    version: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "_LIMIT_MS", 20)
    monkeypatch.setitem(usage._STATEMENTS, usage.UsageBy.ALIAS, "SELECT pg_sleep(5)")
    refused = member(version.adapter.tenant).get("/api/v1/tenants/acme/usage", SPAN)
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (400, "invalid_input", "since")
    assert "fewer days" in refused.json()["detail"]


def test_usage_is_no_business_of_other_tenants(version: Version) -> None:
    assert member(make_tenant(name="other")).get("/api/v1/tenants/acme/usage").status_code == 404


def test_a_trace_is_what_the_replay_reads(version: Version, admin: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "_AT_ONCE", 2)
    foreign = make_version()
    node = make_node(base_revision=version.base_revision)
    facts = {"desired": "gpu", "observed": "loaded", "state_changed_at": AT}
    Residency.objects.create(node=node, version=version, load_ms=200, fetch_ms=50, **facts)
    for number in range(5):
        make_request(version, at=AT + timedelta(seconds=number))
    make_request(foreign, at=AT)
    make_request(version, at=AT, is_shadow=True)
    make_request(None, at=AT)
    asked = SPAN | {"base_model": version.adapter.base_model.name}
    answer = admin.get("/api/v1/request-trace", asked)
    text = answer.getvalue()
    head, first, second, *_rest = text.decode().splitlines()
    assert head == "t_s,tenant,version,size_mib,reload_ms"
    assert first.startswith(f"43200.0,acme,tone@{version.name},")
    assert first.endswith(",250")
    assert second == f"43201.0,acme,tone@{version.name},,"
    trace = read_trace(io.BytesIO(text), name="trace.csv")
    assert (trace.total_requests, trace.versions, trace.tenants) == (5, 1, ("acme",))
    assert admin.get("/api/v1/request-trace", SPAN).getvalue().count(b"\n") == 7


def test_a_trace_names_every_tenant_and_is_for_platform_admins(version: Version) -> None:
    assert member(version.adapter.tenant).get("/api/v1/request-trace").status_code == 403
