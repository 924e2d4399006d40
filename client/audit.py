"""Offline check of an exported audit log: no network, no code shared with the server.

Each record's hash is the SHA-256 of the previous record's hash, a line feed and the record's payload text. So a record
can't be changed, left out, added or moved without breaking the chain from there on. What a chain can't show is that its
end was cut off: compare `head` with one noted earlier.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Iterable

GENESIS = "0" * 64
FIRST_SEQ = 1
PAYLOAD_VERSION = 1
COLUMNS = ("seq", "at", "actor", "action", "object", "before", "after", "reason", "request_id")


@dataclass(frozen=True, slots=True)
class BadRecord:
    """The first record that doesn't fit: line in the export (from 1), its own number if readable, and why."""

    line: int
    seq: int | None
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """How many records are good, the hash of the last good one, and the first bad one."""

    chain: str | None
    records: int
    head: str
    first_bad: BadRecord | None = None

    @property
    def intact(self) -> bool:
        """Say whether every record fits."""
        return self.first_bad is None


class _Bad(Exception):
    """A record doesn't fit."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def verify_export(lines: Iterable[str], *, chain: str | None = None) -> ChainVerdict:
    """Check an export (JSON Lines, oldest first) of the chain named `chain`, or of whichever it names first.

    Stops at the first bad record: behind it nothing can be trusted.
    """
    count, head = 0, GENESIS
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        record: dict[str, object] = {}
        try:
            record = _parse_object(line, "record")
            payload = _parse_object(_text(record, "payload"), "payload")
            _check_place(record, expected_seq=FIRST_SEQ + count, prev_hash=head)
            _check_hash(record)
            chain = _check_chain(payload, chain)
            _check_columns(record, payload)
        except _Bad as bad:
            seq = record.get("seq")
            found = BadRecord(number, seq if type(seq) is int else None, bad.code, str(bad))
            return ChainVerdict(chain, count, head, found)
        count, head = count + 1, _text(record, "hash")
    return ChainVerdict(chain, count, head)


def _check_place(record: dict[str, object], *, expected_seq: int, prev_hash: str) -> None:
    if record.get("seq") != expected_seq:
        message = _("the record is number {found}, but number {expected} has to follow")
        raise _Bad("seq", message.format(found=record.get("seq"), expected=expected_seq))
    if record.get("prev_hash") != prev_hash:
        raise _Bad("prev_hash", _("prev_hash isn't the hash of the record before"))


def _check_hash(record: dict[str, object]) -> None:
    text = f"{_text(record, 'prev_hash')}\n{_text(record, 'payload')}"
    if hashlib.sha256(text.encode()).hexdigest() != record.get("hash"):
        raise _Bad("hash", _("the hash doesn't belong to the payload: one of them was changed"))


def _check_chain(payload: dict[str, object], chain: str | None) -> str:
    if payload.get("v") != PAYLOAD_VERSION:
        raise _Bad("version", _("the payload's form {form!r} isn't known to this client").format(form=payload.get("v")))
    found = _text(payload, "chain")
    if chain is not None and found != chain:
        raise _Bad(
            "chain", _("the record belongs to the log of {found}, not of {chain}").format(found=found, chain=chain)
        )
    return found


def _check_columns(record: dict[str, object], payload: dict[str, object]) -> None:
    for name in COLUMNS:
        if name not in record or name not in payload or not _same(name, record[name], payload[name]):
            raise _Bad(f"column:{name}", _("{name} as shown isn't what the hashed payload says").format(name=name))


def _same(name: str, shown: object, hashed: object) -> bool:
    if name == "at" and isinstance(shown, str) and isinstance(hashed, str):
        return _moment(shown) == _moment(hashed)
    return _canonical(shown) == _canonical(hashed)


def _moment(text: str) -> datetime | str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return moment if moment.tzinfo else text


def _canonical(value: object) -> str:
    """Return one text per JSON value; 1 and true differ there, unlike in Python."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


def _text(record: dict[str, object], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise _Bad(name, _("{name} is missing").format(name=name))
    return value


def _parse_object(text: str, what: str) -> dict[str, object]:
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _Bad(what, _("the {what} isn't readable as JSON").format(what=what)) from error
    if not isinstance(value, dict):
        raise _Bad(what, _("the {what} isn't a JSON object").format(what=what))
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse repeated keys: two readers could see different records."""
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "repeated key"
        raise ValueError(msg)
    return found
