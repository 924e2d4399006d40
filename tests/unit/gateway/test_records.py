from dataclasses import fields

from gateway.records import RecordWriter, RequestRecord
from gateway.trace import Trace


def record() -> RequestRecord:
    return Trace(request_id="req-1", tenant="acme").record(status=200, error_kind="")


def test_records_over_the_bound_are_dropped_and_counted() -> None:
    writer = RecordWriter(database_url="postgresql://nowhere.invalid/", bound=3, flush_s=1)
    for _ in range(5):
        writer.add(record())
    assert (writer.pending, writer.dropped) == (3, 2)


async def test_nothing_to_write_needs_no_database() -> None:
    await RecordWriter(database_url="postgresql://nowhere.invalid/", bound=3, flush_s=1).flush(timeout_s=1)


def test_a_record_has_no_place_for_a_body_or_a_key() -> None:
    assert {field.name for field in fields(RequestRecord)} == {
        *("at", "request_id", "tenant", "alias", "version_id", "node", "tier", "status", "error_kind", "queue_ms"),
        *("load_ms", "ttft_ms", "total_ms", "prompt_tokens", "completion_tokens", "stream"),
    }
