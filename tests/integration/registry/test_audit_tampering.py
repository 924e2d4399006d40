"""Eight ways to tamper with the log's table: refused to the application and to the owner; and whoever gets past that,
by switching the guard off, is found by whoever holds an export and a signed checkpoint."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection

from client.audit import ChainVerdict, verify_export
from deploy.embedded.postgres import APP, OWNER, SUPERUSER, PostgresServer
from registry.actors import system_actor
from registry.audit import append_record
from registry.models import AuditRecord
from registry.services.audit.checkpoints import make_checkpoint, read_checkpoint
from registry.services.audit.exports import audit_document
from registry.signing.checkpoints import AuditCheckpoint, open_checkpoint
from registry.signing.keys import TrustedKey, TrustedKeys
from registry.signing.local_key import LocalKeySigner

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store")]
SYSTEM = system_actor("test")
RECORDS = 6
GUARDS = ("audit_no_update_or_delete", "audit_no_truncate")
_COPIED = "chain, at, actor, action, object, before, after, reason, request_id, source, how, payload, prev_hash, hash"
_MAKE_ROOM = (
    "UPDATE registry_auditrecord SET seq = -seq WHERE chain = 'acme' AND seq >= 4",
    "UPDATE registry_auditrecord SET seq = -seq + 1 WHERE chain = 'acme' AND seq < 0",
)
# A chain written anew by somebody who knows how: each record names the one before, and every hash fits.
_FORGE = """
DO $$
DECLARE
    v_prev text := repeat('0', 64);
    v_payload text;
    r record;
BEGIN
    FOR r IN SELECT seq, payload FROM registry_auditrecord WHERE chain = 'acme' ORDER BY seq LOOP
        v_payload := replace(r.payload, 'tenant:thing:do', 'tenant:thing:no');
        UPDATE registry_auditrecord SET payload = v_payload, action = 'tenant:thing:no', prev_hash = v_prev,
            hash = encode(sha256(convert_to(v_prev || E'\\n' || v_payload, 'UTF8')), 'hex')
        WHERE chain = 'acme' AND seq = r.seq;
        SELECT hash INTO v_prev FROM registry_auditrecord WHERE chain = 'acme' AND seq = r.seq;
    END LOOP;
END $$
"""
TAMPERINGS: dict[str, tuple[str, ...]] = {
    "edited": ("UPDATE registry_auditrecord SET reason = 'fine' WHERE chain = 'acme' AND seq = 3",),
    "deleted": ("DELETE FROM registry_auditrecord WHERE chain = 'acme' AND seq = 3",),
    "cut off": ("DELETE FROM registry_auditrecord WHERE chain = 'acme' AND seq > 4",),
    "moved": (
        "UPDATE registry_auditrecord SET seq = -3 WHERE chain = 'acme' AND seq = 3",
        "UPDATE registry_auditrecord SET seq = 3 WHERE chain = 'acme' AND seq = 4",
        "UPDATE registry_auditrecord SET seq = 4 WHERE chain = 'acme' AND seq = -3",
    ),
    "inserted": (
        *_MAKE_ROOM,
        f"""INSERT INTO registry_auditrecord (seq, {_COPIED})
            SELECT 4, chain, at, actor, action, object, before, after, reason, request_id, source, how, p, hash,
                   encode(sha256(convert_to(hash || E'\\n' || p, 'UTF8')), 'hex')
            FROM (SELECT *, replace(replace(payload, '"seq":3', '"seq":4'), '"id":"2"', '"id":"9"') AS p
                  FROM registry_auditrecord WHERE chain = 'acme' AND seq = 3) AS third""",
        'UPDATE registry_auditrecord SET object = \'{"id":"9","kind":"thing"}\' WHERE chain = \'acme\' AND seq = 4',
    ),
    "duplicated": (
        *_MAKE_ROOM,
        f"""INSERT INTO registry_auditrecord (seq, {_COPIED})
            SELECT 4, {_COPIED} FROM registry_auditrecord WHERE chain = 'acme' AND seq = 2""",
    ),
    "truncated": ("TRUNCATE registry_auditrecord",),
    "replaced": (_FORGE,),
}
PLACES = {
    "edited": 3,
    "deleted": 3,
    "cut off": 5,
    "moved": 3,
    "inserted": 4,
    "duplicated": 4,
    "truncated": 1,
    "replaced": 1,
}


@pytest.fixture
def checkpoint(signer: LocalKeySigner) -> AuditCheckpoint:
    """A log of six records, signed."""
    for number in range(RECORDS):
        append_record(
            actor=SYSTEM, chain="acme", action="tenant:thing:do", object_={"kind": "thing", "id": str(number)}
        )
    made = make_checkpoint(actor=SYSTEM, chain="acme")
    assert made is not None
    return open_checkpoint(read_checkpoint(checkpoint=made), TrustedKeys([TrustedKey(signer._public_key)]))


def run_as(postgres: PostgresServer, role: str, statements: Iterable[str]) -> None:
    with psycopg.connect(postgres.url(role, database=connection.settings_dict["NAME"])) as session:
        for statement in statements:
            session.execute(statement)


@contextmanager
def guard_off(postgres: PostgresServer) -> Iterator[None]:
    """As nobody but the owner can have it; afterwards the guard stands as before."""
    table = "ALTER TABLE registry_auditrecord"
    run_as(postgres, OWNER, [f"{table} DISABLE TRIGGER USER"])
    yield
    run_as(postgres, OWNER, [f"{table} ENABLE ALWAYS TRIGGER {name}" for name in GUARDS])


def verify(checkpoint: AuditCheckpoint | None) -> ChainVerdict:
    records = AuditRecord.objects.filter(chain="acme").order_by("seq")
    lines = (json.dumps(audit_document(record)) for record in records)
    return verify_export(lines, chain="acme", checkpoints=[] if checkpoint is None else [checkpoint])


@pytest.mark.parametrize("role", [APP, OWNER, SUPERUSER])
def test_all_eight_are_refused(postgres: PostgresServer, checkpoint: AuditCheckpoint, role: str) -> None:
    for name, statements in TAMPERINGS.items():
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run_as(postgres, role, statements)
        assert verify(checkpoint).intact, name


@pytest.mark.parametrize("name", TAMPERINGS)
def test_whoever_switches_the_guard_off_is_found_and_what_was_done_is_named(
    postgres: PostgresServer, checkpoint: AuditCheckpoint, name: str
) -> None:
    with guard_off(postgres):
        run_as(postgres, OWNER, TAMPERINGS[name])
    bad = verify(checkpoint).first_bad
    assert bad is not None
    print(f"\n{name}: record {bad.seq}: {bad.message}")
    assert (bad.happened, bad.seq) == (name, PLACES[name])


def test_without_a_checkpoint_only_an_end_cut_off_and_a_log_written_anew_go_unseen(
    postgres: PostgresServer, checkpoint: AuditCheckpoint
) -> None:
    with guard_off(postgres):
        run_as(postgres, OWNER, TAMPERINGS["replaced"])
    assert verify(None).intact


@pytest.mark.parametrize(
    ("head", "middle", "tail", "told"),
    [
        ('"action":"a","actor":{},"after":null,"seq":7', "", '"source":"","v":2', "stands once"),
        ('"action":"a","actor":{"id":"x","id":"y"},"after":null', "", '"source":"","v":2', "stands once"),
        ('"action":"a","actor":{},"after":null', "", '"source":"","v":2},{"x":1', "stands once"),
        ('"action":"a","actor":{},"after":null', '"at":"1970-01-01T00:00:00Z",', '"source":"","v":2', "stands once"),
    ],
)
def test_a_record_that_could_be_read_in_two_ways_is_not_taken(
    postgres: PostgresServer, head: str, middle: str, tail: str, told: str
) -> None:
    rest = '"before":null,"chain":"acme","how":"api","object":{},"reason":"","request_id":""'
    with (
        psycopg.connect(postgres.url(APP, database=connection.settings_dict["NAME"])) as app,
        pytest.raises(psycopg.errors.RaiseException, match=told),
    ):
        app.execute("SELECT audit_append('acme', %s, %s, %s)", [head, middle + rest, tail])


def test_the_applications_role_may_do_what_checkpoints_and_notices_take(
    postgres: PostgresServer, checkpoint: AuditCheckpoint
) -> None:
    allowed = [
        "SELECT * FROM audit_checkpoints_due(interval '1 hour')",
        "SELECT audit_first_broken('acme', 0, repeat('0', 64))",
        "SELECT count(*) FROM registry_auditcheckpoint",
        """INSERT INTO registry_auditnotice (chain, key, facts, count, told, began_at, last_at, ends_at)
           VALUES ('acme', 'k', '{}', 1, 0, now(), now(), now())""",
        "UPDATE registry_auditnotice SET count = count + 1, told = 1, last_at = now()",
        "DELETE FROM registry_auditnotice",
    ]
    run_as(postgres, APP, allowed)
    for refused in ("UPDATE registry_auditcheckpoint SET seq = 1", "DELETE FROM registry_auditcheckpoint"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run_as(postgres, APP, [refused])
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
        run_as(postgres, OWNER, ["UPDATE registry_auditcheckpoint SET seq = 1"])


def test_an_export_goes_on_while_the_log_grows(checkpoint: AuditCheckpoint) -> None:
    records: Any = AuditRecord.objects.filter(chain="acme").order_by("seq").iterator(chunk_size=2)
    lines = [json.dumps(audit_document(next(records)))]
    append_record(actor=SYSTEM, chain="acme", action="tenant:thing:do", object_={})
    lines += [json.dumps(audit_document(record)) for record in records]
    assert verify_export(lines, chain="acme", checkpoints=[checkpoint]).intact
