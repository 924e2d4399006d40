import csv
import io
import json

from gateway.records import MarkRecord, RequestRecord
from gateway.records.shapes import MARKS, REQUESTS, encode
from tests.unit.gateway.records.kit import mark_record, request_record


def test_a_record_has_no_place_for_a_body_or_a_key() -> None:
    assert set(RequestRecord._fields) == {
        *("at", "request_id", "tenant", "alias", "version_id", "node", "tier", "status", "error_kind", "queue_ms"),
        *("load_ms", "ttft_ms", "total_ms", "prompt_tokens", "completion_tokens", "stream"),
        *("path", "side", "is_shadow", "fallback", "retries", "engine_ms"),
    }


def test_a_mark_has_no_place_for_a_text() -> None:
    assert MarkRecord._fields == ("at", "tenant", "request_id", "name", "mark")
    assert MARKS.columns["mark"] == "float8"
    assert json.loads(b"[" + encode(mark_record(mark=0.1)) + b"]")[1:] == ["acme", "req-1", "quality", 0.1]


def test_a_line_is_csv_and_json_at_once() -> None:
    line = encode(request_record("req-1", node=None, prompt_tokens=None)).decode()
    (row,) = csv.reader(io.StringIO(line))
    assert row[:4] == ["2026-03-01T12:30:00.250000+00:00", "req-1", "acme", "support"]
    assert [row[5], row[13], row[15]] == ["null", "null", "true"]
    assert json.loads(f"[{line}]")[1:6] == ["req-1", "acme", "support", "11111111-2222-4333-8444-555555555555", None]


def test_no_text_ends_its_line_or_its_field() -> None:
    line = encode(request_record(alias='a\nb","c\\.', tenant="\x00\r\n"))
    assert b"\n" not in line
    assert b"\r" not in line
    assert json.loads(b"[" + line + b"]")[3] == 'a\nb","c\\.'


def test_every_column_has_a_type_of_the_database() -> None:
    types = REQUESTS.columns
    assert (types["at"], types["version_id"], types["engine_ms"]) == ("timestamptz", "uuid", "int4")
    assert (types["is_shadow"], types["side"], types["retries"]) == ("bool", "text", "int4")
