"""Reading the audit log over the API: of a tenant, of the platform, filtered, exported, with its checkpoints."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from client.audit import verify_export
from registry.actors import system_actor
from registry.models import AuditRecord, Tenant
from registry.services.audit.checkpoints import make_checkpoint
from registry.services.audit.denials import _known
from registry.services.stores import checkpoint_store
from registry.services.tenants import add_member
from registry.states import Role
from tests.api.registry.conftest import Caller
from tests.factories.registry import make_tenant

pytestmark = pytest.mark.django_db
SYSTEM = system_actor("test")
AUDIT = "/api/v1/tenants/acme/audit"


@pytest.fixture(autouse=True)
def _forget_log_ins() -> None:
    _known.clear()


@pytest.fixture
def auditor(as_role: Caller, tenant: Tenant) -> APIClient:
    client: APIClient = as_role(Role.AUDITOR)
    for number in range(5):
        add_member(actor=SYSTEM, tenant=tenant, email=f"p{number}@example.com", role=Role.VIEWER)
    return client


def read(client: APIClient, url: str, **filters: Any) -> Any:
    answer = client.get(url, filters)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def test_the_log_is_read_page_by_page(auditor: APIClient) -> None:
    first = read(auditor, AUDIT, limit=4)
    second = read(auditor, AUDIT, limit=100, cursor=first["next"])
    seqs = [record["seq"] for record in first["results"] + second["results"]]
    assert seqs == list(range(1, len(seqs) + 1))
    assert second["next"] is None


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"action": "tenant:member:add"}, 5),
        ({"action": "tenant:member"}, 5),
        ({"actor": "test", "action": "tenant:member"}, 5),
        ({"actor": "nobody"}, 0),
        ({"object_name": "p3@example.com"}, 1),
        ({"until": "2020-01-01T00:00:00Z"}, 0),
        ({"since": "2020-01-01T00:00:00Z", "action": "tenant:member"}, 5),
    ],
)
def test_the_log_is_filtered(auditor: APIClient, filters: dict[str, str], count: int) -> None:
    assert len(read(auditor, AUDIT, **filters)["results"]) == count


def test_records_behind_a_number_are_asked_for(auditor: APIClient) -> None:
    assert read(auditor, AUDIT, after_seq=5)["results"][0]["seq"] == 6


@pytest.mark.parametrize("bad", [{"after_seq": "x"}, {"after_seq": 2**64}, {"since": "yesterday"}, {"colour": "red"}])
def test_a_filter_that_makes_no_sense_is_refused(auditor: APIClient, bad: dict[str, Any]) -> None:
    assert auditor.get(AUDIT, bad).status_code == 400


def test_an_export_is_whole_verifies_and_is_told_in_the_log_itself(auditor: APIClient) -> None:
    answer: Any = auditor.get(f"{AUDIT}/export")
    lines = answer.getvalue().decode().splitlines()
    assert verify_export(lines, chain="acme").intact
    last = json.loads(lines[-1])
    assert (last["action"], last["actor"]["kind"]) == ("tenant:audit:export", "person")
    assert AuditRecord.objects.filter(chain="acme").count() == len(lines)


def test_reading_is_not_told(auditor: APIClient) -> None:
    read(auditor, AUDIT)
    before = AuditRecord.objects.count()
    read(auditor, AUDIT)
    auditor.get("/api/v1/whoami")
    assert AuditRecord.objects.count() == before


def test_the_platforms_log_is_the_platform_admins(auditor: APIClient, admin: APIClient) -> None:
    make_tenant(name="globex")
    for path in ("", "/export", "/checkpoints", "/checkpoints/1"):
        assert auditor.get(f"/api/v1/audit{path}").status_code == 403
    records = read(admin, "/api/v1/audit")["results"]
    assert {record["chain"] for record in records} == {"platform"}
    exported: Any = admin.get("/api/v1/audit/export")
    lines = exported.getvalue().decode().splitlines()
    assert verify_export(lines, chain="platform").intact
    assert json.loads(lines[-1])["action"] == "platform:audit:export"


def test_checkpoints_are_listed_and_given_as_the_store_has_them(
    auditor: APIClient, admin: APIClient, store: Any, signer: Any
) -> None:
    made = make_checkpoint(actor=SYSTEM, chain="acme")
    assert made is not None
    make_checkpoint(actor=SYSTEM, chain="platform")
    (listed,) = read(auditor, f"{AUDIT}/checkpoints")["results"]
    assert (listed["seq"], listed["head"], listed["locked_until"]) == (made.seq, made.head, None)
    text = auditor.get(f"{AUDIT}/checkpoints/{made.seq}")
    assert text.content == checkpoint_store().read(made.object_key)
    assert [found["chain"] for found in read(admin, "/api/v1/audit/checkpoints")["results"]] == ["platform"]


@pytest.mark.parametrize("seq", ["99", "x", "-1", "9" * 40])
def test_a_checkpoint_that_is_not_there_is_not_found(auditor: APIClient, seq: str) -> None:
    assert auditor.get(f"{AUDIT}/checkpoints/{seq}").status_code == 404


def test_a_checkpoint_that_the_store_has_lost_is_said_to_be_missing(
    auditor: APIClient, store: Any, signer: Any
) -> None:
    made = make_checkpoint(actor=SYSTEM, chain="acme")
    assert made is not None
    (checkpoint_store()._folder / made.object_key).unlink()  # type: ignore[attr-defined]
    assert auditor.get(f"{AUDIT}/checkpoints/{made.seq}").json()["code"] == "object_missing"
