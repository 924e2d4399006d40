"""Offline verification: what doesn't fit is found, and named for what it is."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.audit import GENESIS, ChainVerdict, verify_export
from registry.signing.checkpoints import AuditCheckpoint
from tests.factories.audit_logs import Record, checkpoint_at, hash_of, make_log, make_record

LOG = make_log(8)


@pytest.fixture
def records() -> list[Record]:
    return copy.deepcopy(LOG[:4])


def verify(records: list[Record], *checkpoints: AuditCheckpoint, chain: str | None = "acme") -> ChainVerdict:
    return verify_export((json.dumps(record) for record in records), chain=chain, checkpoints=checkpoints)


def verdict_of(records: list[Record], chain: str | None = "acme") -> tuple[int, str | None]:
    bad = verify(records, chain=chain).first_bad
    return (bad.line, bad.code) if bad else (0, None)


def story_of(records: list[Record], *checkpoints: AuditCheckpoint) -> tuple[int | None, str]:
    """The number of the first bad record, and what happened to it."""
    bad = verify(records, *checkpoints).first_bad
    return (bad.seq, bad.happened) if bad else (None, "intact")


def rewrite(records: list[Record], seq: int, **facts: Any) -> None:
    """Change record ``seq`` and give it a new hash that fits."""
    records[seq - 1] = make_record(seq, records[seq - 2]["hash"] if seq > 1 else GENESIS, **facts)


def test_an_untouched_export_is_intact(records: list[Record]) -> None:
    verdict = verify(records)
    assert verdict.intact
    assert (verdict.records, verdict.head, verdict.chain) == (4, records[-1]["hash"], "acme")


def test_an_empty_export_is_intact_and_has_no_records() -> None:
    assert verify_export([]).records == 0


def test_records_of_the_form_before_this_one_are_read_too() -> None:
    old = make_log(3, form=1)
    assert verify(make_log(5, start=old)).records == 5


def test_a_form_that_is_not_known_yet_is_not_called_good() -> None:
    assert verdict_of(make_log(1, form=3)) == (1, "version")


def test_the_chain_is_taken_from_the_first_record_if_none_is_named(records: list[Record]) -> None:
    assert verify(records, chain=None).chain == "acme"


def test_the_same_moment_in_another_notation_is_the_same(records: list[Record]) -> None:
    records[1]["at"] = "2026-07-04T12:00:02+02:00"
    assert verdict_of(records) == (0, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chain", "globex"),
        ("at", "2026-07-04T10:00:04Z"),
        ("actor", {"kind": "person", "id": "eve@acme.test", "name": "Eve"}),
        ("action", "tenant:member:remove"),
        ("object", {}),
        ("before", {}),
        ("after", {"role": "viewer", "count": True}),
        ("reason", "none"),
        ("request_id", ""),
        ("source", "10.0.0.2"),
        ("how", "task"),
    ],
)
def test_a_column_changed_behind_the_hash_is_found(records: list[Record], name: str, value: object) -> None:
    records[2][name] = value
    assert verdict_of(records) == (3, f"column:{name}")
    assert story_of(records) == (3, "edited")


def test_a_column_left_out_is_found(records: list[Record]) -> None:
    del records[1]["reason"]
    assert verdict_of(records) == (2, "column:reason")


def test_a_changed_payload_is_found(records: list[Record]) -> None:
    records[1]["payload"] = records[1]["payload"].replace("viewer", "auditor")
    records[1]["after"] = {"role": "auditor", "count": 1}
    assert verdict_of(records) == (2, "hash")
    assert story_of(records) == (2, "edited")


def test_a_record_rewritten_with_a_new_hash_is_named_itself_and_not_the_one_behind(records: list[Record]) -> None:
    rewrite(records, 2, reason="rewritten")
    assert verdict_of(records) == (2, "prev_hash")
    assert story_of(records) == (2, "edited")
    assert verify(records).records == 1


def test_a_rewritten_record_that_names_another_one_before_is_named(records: list[Record]) -> None:
    records[1] = make_record(2, "f" * 64)
    assert story_of(records) == (2, "edited")


@pytest.mark.parametrize(
    ("order", "story", "good"),
    [
        ([1, 3, 4], (2, "deleted"), 1),
        ([1, 4], (2, "deleted"), 1),
        ([2, 3, 4], (1, "deleted"), 0),
        ([1, 2, 2, 3], (2, "duplicated"), 2),
        ([1, 2, 3, 4, 1], (1, "duplicated"), 4),
        ([2, 1, 3, 4], (1, "moved"), 0),
        ([1, 4, 3, 2], (2, "moved"), 1),
        ([1, 3, 4, 2], (2, "moved"), 1),
    ],
)
def test_what_was_done_to_the_lines_is_named(order: list[int], story: tuple[int, str], good: int) -> None:
    export = [LOG[seq - 1] for seq in order]
    assert story_of(export) == story
    assert verify(export).records == good


def test_several_missing_records_are_named_from_the_first_to_the_last() -> None:
    bad = verify([LOG[0], *LOG[5:]]).first_bad
    assert bad is not None
    assert "records 2 to 5 were deleted" in bad.message


@pytest.mark.parametrize("forged_prev", ["right", "wrong"])
def test_a_forged_record_put_in_between_is_named(forged_prev: str) -> None:
    prev = LOG[1]["hash"] if forged_prev == "right" else "e" * 64
    forged = make_record(3, prev, reason="forged")
    assert story_of([*LOG[:2], forged, *LOG[2:]]) == (3, "inserted")


def test_a_forged_line_without_any_sense_put_in_between_is_named() -> None:
    assert story_of([*LOG[:2], {"payload": "x", "prev_hash": "y", "hash": "z", "seq": 3}, *LOG[2:]]) == (3, "inserted")


def test_contents_swapped_under_the_same_numbers_are_named(records: list[Record]) -> None:
    for name in set(records[0]) - {"seq", "hash", "prev_hash"}:
        records[1][name], records[2][name] = records[2][name], records[1][name]
    assert story_of(records) == (2, "moved")


def test_a_record_of_another_tenant_is_found(records: list[Record]) -> None:
    records[1] = make_record(2, records[0]["hash"], chain="umbrella")
    assert verdict_of(records, chain=None) == (2, "chain")
    assert verdict_of(records, chain="umbrella") == (1, "chain")
    assert story_of(records) == (2, "inserted")
    assert story_of(make_log(3, chain="umbrella")) == (1, "replaced")


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
    assert verdict_of(records) == (1, "seq")


def test_a_key_that_stands_twice_in_a_payload_is_found(records: list[Record]) -> None:
    payload = records[1]["payload"].replace('"seq":2', '"seq":2,"seq":2')
    records[1] |= {"payload": payload, "hash": hash_of(records[1]["prev_hash"], payload)}
    assert verdict_of(records) == (2, "payload")


def test_checkpoints_that_agree_are_counted() -> None:
    verdict = verify(LOG, checkpoint_at(LOG, 3), checkpoint_at(LOG, 8))
    assert (verdict.intact, verdict.checkpoints, verdict.signed_to) == (True, 2, 8)


def test_a_log_that_has_grown_since_its_last_checkpoint_is_intact() -> None:
    verdict = verify(LOG, checkpoint_at(LOG, 5))
    assert (verdict.intact, verdict.signed_to) == (True, 5)


def test_an_end_that_was_cut_off_is_named() -> None:
    assert story_of(LOG[:5], checkpoint_at(LOG, 3), checkpoint_at(LOG, 7)) == (6, "cut off")
    assert verify(LOG[:5], checkpoint_at(LOG, 7)).records == 5


def test_an_emptied_log_is_named() -> None:
    assert story_of([], checkpoint_at(LOG, 7)) == (1, "truncated")


def test_a_log_that_was_emptied_and_begun_anew_is_named() -> None:
    assert story_of(make_log(4, reason="new"), checkpoint_at(LOG, 3), checkpoint_at(LOG, 7)) == (1, "truncated")
    assert story_of(make_log(2, reason="new"), checkpoint_at(LOG, 3)) == (1, "truncated")


def test_a_log_replaced_as_a_whole_is_named() -> None:
    assert story_of(make_log(9, reason="new"), checkpoint_at(LOG, 3), checkpoint_at(LOG, 7)) == (1, "replaced")


def test_an_end_that_was_replaced_is_named_from_the_last_checkpoint_that_agrees() -> None:
    forged = make_log(9, start=LOG[:5], reason="new")
    assert story_of(forged, checkpoint_at(LOG, 3), checkpoint_at(LOG, 7), checkpoint_at(LOG, 8)) == (4, "replaced")
    verdict = verify(forged, checkpoint_at(LOG, 3), checkpoint_at(LOG, 7))
    assert (verdict.records, verdict.checkpoints, verdict.signed_to) == (3, 1, 3)


def test_a_checkpoint_names_the_chain_if_nobody_else_does() -> None:
    other = make_log(3, chain="globex")
    verdict = verify(other, checkpoint_at(LOG, 3), chain=None)
    assert verdict.first_bad is not None
    assert verdict.first_bad.code == "chain"


def _edit(log: list[Record], at: int, _other: int) -> list[Record]:
    payload = json.dumps(json.loads(log[at]["payload"]) | {"reason": "changed"}, sort_keys=True, separators=(",", ":"))
    return [*log[:at], log[at] | {"payload": payload, "reason": "changed"}, *log[at + 1 :]]


def _delete(log: list[Record], at: int, _other: int) -> list[Record]:
    return log[:at] + log[at + 1 :]


def _cut(log: list[Record], at: int, _other: int) -> list[Record]:
    return log[:at]


def _swap(log: list[Record], at: int, other: int) -> list[Record]:
    swapped = list(log)
    swapped[at], swapped[other] = log[other], log[at]
    return swapped


def _insert(log: list[Record], at: int, _other: int) -> list[Record]:
    return [*log[:at], make_record(at + 1, log[at - 1]["hash"] if at else GENESIS, reason="forged"), *log[at:]]


def _duplicate(log: list[Record], at: int, other: int) -> list[Record]:
    return [*log[: max(at, other) + 1], log[min(at, other)], *log[max(at, other) + 1 :]]


def _truncate(_log: list[Record], at: int, _other: int) -> list[Record]:
    return make_log(at % 3, reason="new")


def _replace(log: list[Record], at: int, _other: int) -> list[Record]:
    return make_log(len(log), start=log[:at], reason="new")


TAMPERINGS: dict[str, Callable[[list[Record], int, int], list[Record]]] = {
    "edited": _edit,
    "deleted": _delete,
    "cut off": _cut,
    "moved": _swap,
    "inserted": _insert,
    "duplicated": _duplicate,
    "truncated": _truncate,
    "replaced": _replace,
}


@pytest.mark.parametrize("name", TAMPERINGS)
@given(length=st.integers(3, 12), data=st.data())
def test_each_of_eight_tamperings_is_found_at_its_place_and_called_by_its_name(
    name: str, length: int, data: st.DataObject
) -> None:
    log = make_log(length)
    # The last record has a checkpoint; what is done to it alone looks like an end that was cut off.
    at = data.draw(st.integers(1, length - 2))
    other = data.draw(st.integers(0, length - 1).filter(lambda index: index != at))
    signed = [checkpoint_at(log, seq) for seq in {*data.draw(st.sets(st.integers(1, length))), length}]
    bad = verify(TAMPERINGS[name](log, at, other), *signed).first_bad
    assert bad is not None
    assert bad.happened == name
    if name == "edited":
        assert bad.seq == at + 1
