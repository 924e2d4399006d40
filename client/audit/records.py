"""One line of an export: what it shows, what its hashed payload says, and whether the two agree."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime

from client.i18n import _

GENESIS = "0" * 64
FIRST_SEQ = 1
PAYLOAD_VERSIONS = (1, 2)
# Records of the form 1 were written before it was told by which way an act came in.
_COLUMNS = ("seq", "chain", "at", "actor", "action", "object", "before", "after", "reason", "request_id", "source")
_COLUMNS_OF = {1: _COLUMNS, 2: (*_COLUMNS, "how")}


class Unfit(Exception):
    """A record doesn't fit; `code` says in one word which check it fails."""

    def __init__(self, code: str, message: str) -> None:
        """Take the code and a sentence for people."""
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Link:
    """One line.

    Attributes:
        line: in the export, from 1.
        shown: the record's columns; empty if the line can't be read.
        said: what the payload says, which the hash covers; empty if it can't be read.
        prev_hash, hash: as shown; empty if they aren't there.
        unreadable: why the line or its payload can't be read.

    """

    line: int
    shown: dict[str, object] = field(default_factory=dict)
    said: dict[str, object] = field(default_factory=dict)
    prev_hash: str = ""
    hash: str = ""
    unreadable: Unfit | None = None

    @property
    def seq(self) -> int:
        """The number that the payload gives itself; 0 if it has none."""
        return _number(self.said.get("seq"))

    @property
    def shown_seq(self) -> int | None:
        """The number under which the record is shown, if it can be read."""
        return _number(self.shown.get("seq")) or None

    @property
    def is_sound(self) -> bool:
        """Whether the hash belongs to the payload: then both are as they were written, by whomever."""
        text = f"{self.prev_hash}\n{self.shown.get('payload')}"
        return self.unreadable is None and hashlib.sha256(text.encode(errors="replace")).hexdigest() == self.hash

    def follows(self, *, seq: int, head: str) -> bool:
        """Whether this, as it was written, is record `seq` behind the record with the hash `head`."""
        return self.is_sound and self.seq == seq and self.prev_hash == head

    def require_fit(self, *, seq: int, head: str, chain: str | None) -> None:
        """Raise `Unfit` unless this is record `seq` of `chain` behind the record with the hash `head`."""
        if self.unreadable is not None:
            raise self.unreadable
        if self.shown_seq != seq:
            message = _("the record is number {found}, but number {expected} has to follow")
            raise Unfit("seq", message.format(found=self.shown.get("seq"), expected=seq))
        if self.prev_hash != head:
            raise Unfit("prev_hash", _("prev_hash isn't the hash of the record before"))
        if not self.is_sound:
            raise Unfit("hash", _("the hash doesn't belong to the payload: one of them was changed"))
        self._require_form(chain)

    def _require_form(self, chain: str | None) -> None:
        form = _number(self.said.get("v"))
        if form not in PAYLOAD_VERSIONS:
            message = _("the payload's form {form!r} isn't known to this client")
            raise Unfit("version", message.format(form=self.said.get("v")))
        found = self.said.get("chain")
        if chain is not None and found != chain:
            message = _("the record belongs to the log of {found}, not of {chain}")
            raise Unfit("chain", message.format(found=found, chain=chain))
        for name in _COLUMNS_OF[form]:
            if name not in self.shown or name not in self.said or not _same(name, self.shown[name], self.said[name]):
                raise Unfit(f"column:{name}", _("{name} as shown isn't what the hashed payload says").format(name=name))


def read_link(line: int, text: str) -> Link:
    """Read one line of an export; whatever it holds, this raises nothing."""
    shown: dict[str, object] = {}
    try:
        shown = _parse_object(text, "record")
        said = _parse_object(_text(shown, "payload"), "payload")
        return Link(line, shown, said, prev_hash=_text(shown, "prev_hash"), hash=_text(shown, "hash"))
    except Unfit as unfit:
        return Link(line, shown, unreadable=unfit)


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


def _number(value: object) -> int:
    return value if type(value) is int else 0


def _text(record: dict[str, object], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise Unfit(name, _("{name} is missing").format(name=name))
    return value


def _parse_object(text: str, what: str) -> dict[str, object]:
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise Unfit(what, _("the {what} isn't readable as JSON").format(what=what)) from error
    if not isinstance(value, dict):
        raise Unfit(what, _("the {what} isn't a JSON object").format(what=what))
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse repeated keys: two readers could see different records."""
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "repeated key"
        raise ValueError(msg)
    return found
