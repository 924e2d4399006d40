import hashlib
import json
from typing import Any

import pytest

from client.audit import GENESIS, verify_export

Record = dict[str, Any]


def make_record(seq: int, prev: str, *, chain: str = "acme") -> Record:
    shown: Record = {
        "seq": seq,
        "at": f"2026-07-04T10:00:0{seq}.000000Z",
        "actor": {"kind": "person", "id": "ada@acme.test", "name": "Ada"},
        "action": "tenant:member:add",
        "object": {"kind": "person", "id": "7", "name": "Grace\u2028"},
        "before": None,
        "after": {"role": "viewer", "count": 1},
        "reason": "",
        "request_id": "r1",
    }
    payload = json.dumps({"v": 1, "chain": chain, "source": "", **shown}, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"{prev}\n{payload}".encode()).hexdigest()
    return {**shown, "prev_hash": prev, "hash": digest, "payload": payload}


@pytest.fixture
def records() -> list[Record]:
    made: list[Record] = []
    for seq in (1, 2, 3, 4):
        made.append(make_record(seq, made[-1]["hash"] if made else GENESIS))
    return made


def verdict_of(records: list[Record], chain: str | None = "acme") -> tuple[int, str | None]:
    verdict = verify_export((json.dumps(record) for record in records), chain=chain)
    bad = verdict.first_bad
    return (bad.line, bad.code) if bad else (0, None)


def test_an_untouched_export_is_intact(records: list[Record]) -> None:
    verdict = verify_export((json.dumps(record) for record in records), chain="acme")
    assert verdict.intact
    assert (verdict.records, verdict.head, verdict.chain) == (4, records[-1]["hash"], "acme")


def test_an_empty_export_is_intact_and_has_no_records() -> None:
    assert verify_export([]).records == 0


def test_the_chain_is_taken_from_the_first_record_if_none_is_named(records: list[Record]) -> None:
    assert verify_export(json.dumps(r) for r in records).chain == "acme"


def test_the_same_moment_in_another_notation_is_the_same(records: list[Record]) -> None:
    records[1]["at"] = "2026-07-04T12:00:02+02:00"
    assert verdict_of(records) == (0, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("at", "2026-07-04T10:00:04Z"),
        ("actor", {"kind": "person", "id": "eve@acme.test", "name": "Eve"}),
        ("action", "tenant:member:remove"),
        ("object", {}),
        ("before", {}),
        ("after", {"role": "viewer", "count": True}),
        ("reason", "none"),
        ("request_id", ""),
    ],
)
def test_a_column_changed_behind_the_hash_is_found(records: list[Record], name: str, value: object) -> None:
    records[2][name] = value
    assert verdict_of(records) == (3, f"column:{name}")


def test_a_column_left_out_is_found(records: list[Record]) -> None:
    del records[1]["reason"]
    assert verdict_of(records) == (2, "column:reason")


def test_a_changed_payload_is_found(records: list[Record]) -> None:
    records[1]["payload"] = records[1]["payload"].replace("viewer", "auditor")
    records[1]["after"] = {"role": "auditor", "count": 1}
    assert verdict_of(records) == (2, "hash")


def test_a_record_rewritten_with_a_new_hash_breaks_the_next_link(records: list[Record]) -> None:
    records[1] = make_record(2, records[0]["hash"], chain="acme")
    payload = json.loads(records[1]["payload"]) | {"reason": "rewritten"}
    text = json.dumps(payload)
    digest = hashlib.sha256(f"{records[0]['hash']}\n{text}".encode()).hexdigest()
    records[1] |= {"payload": text, "hash": digest, "reason": "rewritten"}
    assert verdict_of(records) == (3, "prev_hash")


def test_a_missing_a_doubled_and_a_swapped_record_are_found(records: list[Record]) -> None:
    one, two, three, four = records
    assert verdict_of([one, three, four]) == (2, "seq")
    assert verdict_of([one, two, two, three]) == (3, "seq")
    assert verdict_of([two, one, three, four]) == (1, "seq")
    assert verdict_of([two, three, four]) == (1, "seq")


def test_a_record_of_another_tenant_is_found(records: list[Record]) -> None:
    records[1] = make_record(2, records[0]["hash"], chain="umbrella")
    assert verdict_of(records, chain=None) == (2, "chain")
    assert verdict_of(records, chain="umbrella") == (1, "chain")


@pytest.mark.parametrize(
    ("line", "code"),
    [("{", "record"), ("[]", "record"), ("null", "record"), ('{"seq":1,"seq":2}', "record"), ("{}", "payload")],
)
def test_lines_that_are_no_records_are_bad_and_not_crashes(line: str, code: str) -> None:
    verdict = verify_export([line])
    assert verdict.first_bad is not None
    assert verdict.first_bad.code == code


def test_deeply_nested_lines_are_bad_and_not_crashes() -> None:
    assert not verify_export(["[" * 100_000]).intact


def test_a_true_is_not_a_one(records: list[Record]) -> None:
    records[0]["seq"] = True
    assert verdict_of(records) == (1, "column:seq")
