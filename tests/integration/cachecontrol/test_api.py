"""The HTTP surface of cache control: status codes, documents, tokens, and what callers may see."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from cachecontrol.models import Node, Residency
from cachecontrol.services.nodes import rotate_node_token
from cachecontrol.states import Outcome
from registry.actors import system_actor
from registry.models import Version
from registry.services.tokens import create_platform_token, create_tenant_token
from registry.states import Role, Scope, TokenKind
from tests.factories.cachecontrol import backdate, register, tell
from tests.factories.registry import make_person, make_tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

PERSON_SCOPES = [Scope.READ, Scope.UPLOAD, Scope.APPROVE, Scope.RELEASE, Scope.OPERATE]
NODE_KEYS = {
    "name", "engine_kind", "engine_url", "base_model", "base_revision", "gpu_slots", "cpu_slots", "max_rank",
    "disk_bytes", "memory_bytes", "status", "boot_id", "last_seen_at", "residencies", "tainted", "poisoned",
    "restartable", "stuck", "cordoned", "draining", "recycling_since", "mismatches", "drift", "disk_used_bytes",
    "disk_free_bytes", "engine_healthy",
}  # fmt: skip
RESIDENCY_KEYS = {
    "node", "tenant", "adapter", "version", "version_id", "engine_name", "desired", "observed", "generation",
    "message", "load_ms", "updated_at", "planned_tier", "tier", "tier_is_estimate", "fetch_ms", "fetched_bytes",
    "last_used_at",
}  # fmt: skip


def client_with(token: str) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


@pytest.fixture
def admin(db: None) -> APIClient:
    person = make_person(is_platform_admin=True)
    token = create_platform_token(
        actor=system_actor("test"),
        name="admin",
        kind=TokenKind.PERSON,
        scopes=[Scope.READ, Scope.ADMIN],
        person=person,
    )
    return client_with(token.text)


@pytest.fixture
def gateway(db: None) -> APIClient:
    token = create_platform_token(actor=system_actor("test"), name="gw", kind=TokenKind.GATEWAY, scopes=[Scope.DEMAND])
    return client_with(token.text)


def member(tenant: Any, *roles: Role) -> APIClient:
    person = make_person(roles={tenant: roles})
    token = create_tenant_token(
        actor=system_actor("test"),
        tenant=tenant,
        name="test",
        kind=TokenKind.PERSON,
        scopes=PERSON_SCOPES,
        person_email=person.email,
    )
    return client_with(token.text)


def place(version: Version) -> dict[str, str]:
    adapter = version.adapter
    return {"tenant": adapter.tenant.name, "adapter": adapter.name, "version": version.name}


def post(client: APIClient, path: str, body: dict[str, Any]) -> Any:
    return client.post(f"/api/v1/{path}", body, format="json")


def test_a_node_is_registered_with_its_token_shown_once(admin: APIClient, version: Version) -> None:
    revision = version.base_revision
    body = {
        "name": "n1", "engine_kind": "vllm", "engine_url": "http://127.0.0.1:8000",
        "base_model": revision.base_model.name, "base_revision": revision.label,
        "gpu_slots": 2, "cpu_slots": 4, "max_rank": 16, "disk_bytes": 10**9,
    }  # fmt: skip
    made = post(admin, "nodes", body)
    assert made.status_code == 201, made.json()
    assert set(made.json()) >= NODE_KEYS | {"token"}
    assert (made.json()["status"], made.json()["boot_id"], made.json()["last_seen_at"]) == ("new", None, None)
    shown = admin.get("/api/v1/nodes/n1").json()
    assert "token" not in shown
    assert [node["name"] for node in admin.get("/api/v1/nodes").json()["results"]] == ["n1"]
    assert post(admin, "nodes", body).json()["code"] == "name_taken"
    rotated = admin.post("/api/v1/nodes/n1/rotate-token")
    assert rotated.status_code == 200
    assert rotated.json()["token"] != made.json()["token"]
    missing = post(admin, "nodes", {**body, "name": "n2", "base_revision": "nope"})
    assert (missing.status_code, missing.json()["field"]) == (404, "base_revision")
    wrong = post(admin, "nodes", {**body, "name": "n2", "cpu_slots": 1})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "cpu_slots")


def test_members_do_not_register_nodes(version: Version) -> None:
    client = member(version.adapter.tenant, *Role)
    assert post(client, "nodes", {}).status_code == 403
    assert client.post("/api/v1/nodes/n1/rotate-token").status_code == 403


def test_an_operator_warms_and_evicts(node: Node, version: Version) -> None:
    client = member(version.adapter.tenant, Role.OPERATOR)
    warmed = post(client, "nodes/n1/warm", place(version))
    assert warmed.status_code == 202
    assert set(warmed.json()) == RESIDENCY_KEYS
    assert (warmed.json()["desired"], warmed.json()["observed"], warmed.json()["generation"]) == ("gpu", "absent", 1)
    tell(node, version, Outcome.LOADED, timings_ms={"load": 15})
    [shown] = client.get("/api/v1/nodes/n1").json()["residencies"]
    assert (shown["observed"], shown["load_ms"], shown["engine_name"]) == ("loaded", 15, version.engine_name)
    evicted = post(client, "nodes/n1/evict", place(version))
    assert (evicted.status_code, evicted.json()["desired"], evicted.json()["generation"]) == (202, "absent", 2)
    tell(node, version, Outcome.EVICTED)
    assert client.get("/api/v1/nodes/n1").json()["residencies"] == []


def test_an_operator_takes_a_version_out_of_the_engine_and_keeps_its_files(node: Node, version: Version) -> None:
    client = member(version.adapter.tenant, Role.OPERATOR)
    post(client, "nodes/n1/warm", place(version))
    tell(node, version, Outcome.LOADED)
    Residency.objects.update(is_hot=False)
    [shown] = client.get("/api/v1/nodes/n1").json()["residencies"]
    assert (shown["planned_tier"], shown["tier"], shown["tier_is_estimate"]) == ("cpu", "gpu", True)
    Residency.objects.update(is_hot=True)
    assert client.get("/api/v1/nodes/n1").json()["residencies"][0]["planned_tier"] == "gpu"
    demoted = post(client, "nodes/n1/evict", {**place(version), "to": "disk"})
    assert (demoted.status_code, demoted.json()["desired"], demoted.json()["planned_tier"]) == (202, "disk", "disk")
    assert post(client, "nodes/n1/evict", {**place(version), "to": "gpu"}).json()["field"] == "to"


@pytest.mark.parametrize(
    ("verb", "field", "shown"),
    [("cordon", "cordoned", True), ("uncordon", "cordoned", False), ("drain", "draining", True)],
)
def test_an_admin_sets_a_node_aside(node: Node, admin: APIClient, verb: str, field: str, shown: bool) -> None:
    answer = post(admin, f"nodes/n1/{verb}", {"reason": "new driver"})
    assert (answer.status_code, set(answer.json()), answer.json()[field]) == (200, NODE_KEYS, shown)
    assert post(admin, "nodes/nowhere/cordon", {}).status_code == 404


def test_an_admin_has_an_engine_restarted_or_is_told_why_not(node: Node, admin: APIClient) -> None:
    refused = post(admin, "nodes/n1/recycle", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "node_not_restartable")
    Node.objects.filter(pk=node.pk).update(restartable=True)
    answer = post(admin, "nodes/n1/recycle", {})
    assert answer.status_code == 202
    assert answer.json()["recycling_since"]


def test_a_report_lists_everything_unless_it_says_that_nothing_changed(node: Node) -> None:
    agent = client_with(rotate_node_token(actor=system_actor("test"), node=node).token)
    short = {"boot_id": "boot-1", "engine_healthy": True, "loaded": []}
    assert post(agent, "node/report", short).json()["field"] == "on_disk"
    unchanged = {"boot_id": "boot-1", "engine_healthy": True, "unchanged": True, "tiers": {"lk-a": "cpu"}}
    assert post(agent, "node/report", unchanged).json()["resend"]
    disk = {"used_bytes": 1, "free_bytes": 2}
    more = {**short, "on_disk": [], "disk": disk, "dropped": [{"name": "lk-a", "reason": "full"}], "mismatched": []}
    assert post(agent, "node/report", {**more, "poisoned": True, "restartable": True}).status_code == 200
    node.refresh_from_db()
    assert (node.disk_free_bytes, node.poisoned, node.restartable) == (2, True, True)


def test_warming_elsewhere_or_something_else_is_refused_with_a_reason(node: Node, version: Version) -> None:
    client = member(version.adapter.tenant, Role.OPERATOR)
    other = register(name="n2").node
    refused = post(client, f"nodes/{other.name}/warm", place(version))
    assert (refused.status_code, refused.json()["code"]) == (409, "node_refused")
    assert post(client, "nodes/nowhere/warm", place(version)).status_code == 404
    assert post(client, "nodes/n1/warm", {**place(version), "version": "nope"}).json()["field"] == "version"
    viewer = member(version.adapter.tenant, Role.VIEWER)
    assert post(viewer, "nodes/n1/warm", place(version)).status_code == 403
    stranger = member(make_tenant(), Role.OPERATOR)
    assert post(stranger, "nodes/n1/warm", place(version)).status_code == 404


def test_what_belongs_to_other_tenants_is_not_shown(node: Node, version: Version, admin: APIClient) -> None:
    post(member(version.adapter.tenant, Role.OPERATOR), "nodes/n1/warm", place(version))
    assert len(admin.get("/api/v1/nodes/n1").json()["residencies"]) == 1
    assert (
        len(member(version.adapter.tenant, Role.VIEWER).get("/api/v1/nodes").json()["results"][0]["residencies"]) == 1
    )
    stranger = member(make_tenant(), Role.OPERATOR)
    assert stranger.get("/api/v1/nodes/n1").json()["residencies"] == []
    assert stranger.get("/api/v1/nodes").json()["results"][0]["residencies"] == []


def test_names_of_others_in_an_engine_are_not_shown(node: Node, version: Version, admin: APIClient) -> None:
    post(member(version.adapter.tenant, Role.OPERATOR), "nodes/n1/warm", place(version))
    theirs = version.engine_name
    Node.objects.update(drift={"unknown": ["lk-secret-project-v1"], "mismatched": [theirs]})
    drifts = [
        client.get("/api/v1/nodes/n1").json()["drift"]
        for client in (admin, member(version.adapter.tenant, Role.VIEWER), member(make_tenant(), Role.OPERATOR))
    ]
    assert drifts == [
        {"unknown": ["lk-secret-project-v1"], "mismatched": [theirs]},
        {"unknown": [], "mismatched": [theirs]},
        {"unknown": [], "mismatched": []},
    ]


def test_a_member_is_told_of_its_own_version_in_an_engine_where_nobody_wants_it(node: Node, version: Version) -> None:
    strange = {"unknown": [version.engine_name], "mismatched": []}
    Node.objects.update(drift=strange)
    own = member(version.adapter.tenant, Role.VIEWER)
    assert own.get("/api/v1/nodes/n1").json()["drift"] == strange
    assert own.get("/api/v1/nodes").json()["results"][0]["drift"] == strange


def test_a_list_of_nodes_with_drift_asks_no_more_often_for_more_of_them(node: Node, version: Version) -> None:
    own = member(version.adapter.tenant, Role.VIEWER)

    def asked() -> int:
        Node.objects.update(drift={"unknown": [version.engine_name], "mismatched": []})
        with CaptureQueriesContext(connection) as queries:
            assert own.get("/api/v1/nodes").status_code == 200
        return len(queries)

    asked()
    of_one = asked()
    for _number in range(19):
        register(base_revision=version.base_revision)
    assert asked() == of_one


def test_a_gateway_demands_by_id_and_is_told_how_it_stands(node: Node, version: Version, gateway: APIClient) -> None:
    answer = post(gateway, "demand", {"version_id": str(version.pk)})
    assert (answer.status_code, answer.json()["state"], answer.json()["wait_s"]) == (202, "loading", 30.0)
    tell(node, version, Outcome.LOADED)
    again = {"version_id": str(version.pk), "waiting": 3, "deadline_ms": 500, "in_flight": [str(version.pk)]}
    known = {"message": "", "code": "", "tier": None, "position": None, "retry_after_s": None, "wait_s": None}
    assert post(gateway, "demand", again).json() == {"state": "loaded", **known}
    assert post(gateway, "demand", {"version_id": str(uuid4())}).status_code == 404
    assert post(gateway, "demand", {"version_id": "x"}).json()["field"] == "version_id"
    assert gateway.get("/api/v1/nodes").status_code == 403
    assert post(gateway, "node/report", {}).status_code in (400, 403)


def test_a_node_reports_and_tells_outcomes_with_its_own_token(version: Version) -> None:
    made = register(name="n1", base_revision=version.base_revision)
    agent = client_with(made.token)
    report = {
        "boot_id": "b1",
        "engine_healthy": True,
        "loaded": [{"name": "lk-stranger", "root": "/somewhere"}],
        "on_disk": [],
        "sent_at": "2026-07-04T12:00:00+00:00",
    }
    told = post(agent, "node/report", report).json()
    assert (told.pop("limits")["disk_bytes"], told) == (
        10**9,
        {"ok": True, "unknown": ["lk-stranger"], "recycle": None, "resend": False},
    )
    post(member(version.adapter.tenant, Role.OPERATOR), "nodes/n1/warm", place(version))
    outcome = {
        "engine_name": version.engine_name, "generation": 1, "outcome": "loaded", "boot_id": "b1",
        "timings_ms": {"fetch": 1, "verify": 2, "load": 3, "probe": 4},
    }  # fmt: skip
    for _time in range(2):
        assert post(agent, "node/outcomes", outcome).json() == {"ok": True}
    residency = Residency.objects.get()
    assert (residency.observed, residency.load_ms) == ("loaded", 3)
    backdate(residency, 60, "state_changed_at")
    assert post(agent, "node/report", {**report, "boot_id": "b2", "loaded": []}).json()["unknown"] == []
    residency.refresh_from_db()
    assert (residency.observed, residency.generation) == ("absent", 2)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"outcome": "exploded"}, "outcome"),
        ({"generation": 0}, "generation"),
        ({"generation": 2**63}, "generation"),
        ({"error_class": "cosmic"}, "error_class"),
        ({"timings_ms": {"load": -1}}, "timings_ms.load"),
        ({"timings_ms": {"load": 2**31}}, "timings_ms.load"),
        ({"engine_name": ""}, "engine_name"),
    ],
)
def test_an_outcome_that_makes_no_sense_is_refused_with_the_field(change: dict[str, Any], field: str) -> None:
    agent = client_with(register().token)
    body = {"engine_name": "lk-x", "generation": 1, "outcome": "failed", **change}
    answer = post(agent, "node/outcomes", body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


def test_an_outcome_for_a_version_that_the_node_was_never_asked_for_is_not_found() -> None:
    agent = client_with(register().token)
    body = {"engine_name": "lk-x", "generation": 1, "outcome": "failed"}
    assert post(agent, "node/outcomes", body).status_code == 404


def test_a_rotated_token_no_longer_reports(admin: APIClient) -> None:
    made = register(name="n1")
    admin.post("/api/v1/nodes/n1/rotate-token")
    body = {"boot_id": "b", "engine_healthy": True, "loaded": [], "on_disk": []}
    assert post(client_with(made.token), "node/report", body).status_code == 401


def test_the_size_of_a_disk_is_a_number_that_every_reader_of_json_understands(admin: APIClient, node: Node) -> None:
    body = {**node_body(node), "name": "n9", "disk_bytes": 2**60}
    assert admin.post("/api/v1/nodes", body, format="json").status_code == 400
    assert admin.post("/api/v1/nodes", {**body, "disk_bytes": 2**53 - 1}, format="json").status_code == 201


def test_who_may_not_register_nodes_learns_nothing_of_names_by_trying(gateway: APIClient, node: Node) -> None:
    for name in ("n1", "no-such-node"):
        assert gateway.post(f"/api/v1/nodes/{name}/rotate-token").status_code == 403
    for label in (node.base_revision.label, "no-such-revision"):
        body = {**node_body(node), "name": "n9", "base_revision": label}
        assert gateway.post("/api/v1/nodes", body, format="json").status_code == 403


def node_body(node: Node) -> dict[str, Any]:
    return {
        "engine_kind": "vllm",
        "engine_url": "http://127.0.0.1:8100",
        "base_model": node.base_revision.base_model.name,
        "base_revision": node.base_revision.label,
        "gpu_slots": 2,
        "cpu_slots": 4,
        "max_rank": 64,
        "disk_bytes": 10**9,
    }
