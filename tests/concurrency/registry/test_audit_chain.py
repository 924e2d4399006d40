"""Many writers of one chain at once."""

import json
import threading

import pytest
from django.db import transaction

from client.audit import verify_export
from registry.actors import Actor, system_actor
from registry.audit import append_record
from registry.models import AuditNotice, AuditRecord
from registry.services.audit.denials import note_denial
from registry.services.audit.exports import audit_document
from tests.concurrency.racing import errors_in, race

pytestmark = pytest.mark.django_db(transaction=True)
WRITERS = 8
APPENDS = 100


def test_eight_writers_with_a_hundred_records_each_leave_one_chain_without_a_gap() -> None:
    def write(writer: int) -> None:
        for number in range(APPENDS):
            append_record(
                actor=system_actor(f"writer-{writer}"),
                chain="acme",
                action="tenant:thing:do",
                object_={"kind": "thing", "id": str(number)},
            )

    results = race(*(lambda writer=writer: write(writer) for writer in range(WRITERS)))
    assert errors_in(results) == []
    records = AuditRecord.objects.filter(chain="acme").order_by("seq")
    verdict = verify_export((json.dumps(audit_document(record)) for record in records), chain="acme")
    assert (verdict.intact, verdict.records) == (True, WRITERS * APPENDS)
    for writer in range(WRITERS):
        mine = [record for record in records if record.actor["id"] == f"writer-{writer}"]
        assert [int(record.object["id"]) for record in mine] == list(range(APPENDS))


def test_writers_that_roll_back_leave_no_gap() -> None:
    def write(writer: int) -> None:
        for number in range(20):
            with transaction.atomic():
                append_record(actor=system_actor(f"w{writer}"), chain="acme", action="a:b:c", object_={})
                transaction.set_rollback(bool(number % 2))

    assert errors_in(race(*(lambda writer=writer: write(writer) for writer in range(4)))) == []
    records = list(AuditRecord.objects.filter(chain="acme").order_by("seq"))
    assert [record.seq for record in records] == list(range(1, 41))
    assert verify_export(json.dumps(audit_document(record)) for record in records).intact


def test_many_equal_denied_attempts_at_once_are_one_record_and_none_is_lost() -> None:
    eve = Actor(kind="person", id="eve@example.com", name="Eve")
    together = threading.Barrier(WRITERS)

    def attempt() -> None:
        together.wait(timeout=10)
        note_denial(actor=eve, chain="acme", group=("a",), request={"kind": "request"}, reason="no")

    assert errors_in(race(*([attempt] * WRITERS))) == []
    told = AuditRecord.objects.values_list("after__attempts", flat=True).get(chain="acme")
    notice = AuditNotice.objects.get()
    assert (notice.count, notice.told) == (WRITERS, told)
