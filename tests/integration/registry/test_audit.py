import hashlib
import json

import psycopg
import pytest
import rfc8785
from django.db import DatabaseError, connection, transaction

from deploy.embedded.postgres import APP, GATEWAY, SUPERUSER, PostgresServer
from registry.actors import Actor, system_actor
from registry.audit import append_record
from registry.models import AuditRecord

pytestmark = pytest.mark.django_db


def append(chain: str = "acme", action: str = "tenant:thing:do", **facts: object) -> int:
    return append_record(
        actor=system_actor("test"),
        chain=chain,
        action=action,
        object_={"kind": "thing", "id": "1", "name": "thing"},
        **facts,  # type: ignore[arg-type]
    )


def test_records_of_one_chain_are_numbered_without_gaps_and_linked() -> None:
    assert [append(), append(), append()] == [1, 2, 3]
    previous = "0" * 64
    for record in AuditRecord.objects.filter(chain="acme").order_by("seq"):
        assert record.prev_hash == previous
        assert record.hash == hashlib.sha256(f"{previous}\n{record.payload}".encode()).hexdigest()
        previous = record.hash


def test_chains_are_independent() -> None:
    assert [append("acme"), append("globex"), append("acme")] == [1, 1, 2]


def test_the_payload_is_canonical_json_of_the_whole_record() -> None:
    actor = Actor(kind="person", id="ana@example.com", name="Ana “A” Ünal", token_prefix="abc", request_id="r1")
    append_record(
        actor=actor,
        chain="acme",
        action="adapter:version:approve",
        object_={"kind": "version", "id": "1", "name": "acme/x@1"},
        before={"state": "candidate", "n": 1.5},
        after={"state": "approved", "list": [1, None, True]},
        reason="fine\nwith me \u2028",
    )
    record = AuditRecord.objects.get()
    document = json.loads(record.payload)
    assert rfc8785.dumps(document).decode() == record.payload
    assert document["seq"] == record.seq
    assert document["at"] == f"{record.at:%Y-%m-%dT%H:%M:%S.%fZ}"
    for column in ("actor", "action", "object", "before", "after", "reason", "request_id", "source", "chain"):
        assert document[column] == getattr(record, column), column


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE registry_auditrecord SET reason = 'x'",
        "DELETE FROM registry_auditrecord",
        "TRUNCATE registry_auditrecord",
    ],
)
def test_the_log_can_only_grow_even_for_its_owner(sql: str) -> None:
    append()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)
    assert AuditRecord.objects.count() == 1


def as_role(postgres: PostgresServer, role: str) -> psycopg.Connection[tuple[object, ...]]:
    name = connection.settings_dict["NAME"]
    return psycopg.connect(postgres.url(role, database=name))


@pytest.mark.django_db(transaction=True)
def test_replica_mode_does_not_switch_the_guard_off(postgres: PostgresServer) -> None:
    append()
    with as_role(postgres, SUPERUSER) as superuser, pytest.raises(psycopg.DatabaseError, match="append-only"):
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute("DELETE FROM registry_auditrecord")
    assert AuditRecord.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO registry_auditrecord (chain, seq) VALUES ('x', 1)",
        "UPDATE registry_auditrecord SET reason = 'x'",
        "DELETE FROM registry_auditrecord",
        "TRUNCATE registry_auditrecord",
        "DROP TABLE registry_auditrecord",
    ],
)
def test_the_app_role_may_not_touch_the_log(postgres: PostgresServer, sql: str) -> None:
    append()
    with as_role(postgres, APP) as app, pytest.raises(psycopg.DatabaseError, match=r"permission denied|must be owner"):
        app.execute(sql)


@pytest.mark.django_db(transaction=True)
def test_the_app_role_may_append_by_the_function_and_the_gateway_may_not(postgres: PostgresServer) -> None:
    fragments = (
        '"action":"a:b:c","actor":{},"after":null',
        '"before":null,"chain":"acme","object":{},"reason":"","request_id":""',
        '"source":"","v":1',
    )
    sql = "SELECT audit_append('acme', %s, %s, %s)"
    with as_role(postgres, APP) as app:
        app.execute(sql, fragments)
    with as_role(postgres, GATEWAY) as gateway, pytest.raises(psycopg.DatabaseError, match="permission denied"):
        gateway.execute(sql, fragments)
    assert AuditRecord.objects.count() == 1


def test_a_record_can_not_be_put_into_another_chain() -> None:
    with pytest.raises(DatabaseError, match="names chain"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT audit_append('globex', %s, %s, %s)",
            [
                '"action":"a","actor":{},"after":null',
                '"before":null,"chain":"acme","object":{},"reason":"","request_id":""',
                '"source":"","v":1',
            ],
        )


def test_a_change_that_fails_leaves_no_record() -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        append()
        raise RuntimeError
    assert not AuditRecord.objects.exists()
    assert append() == 1
