"""What happened to a log, told from the first record that doesn't fit and from what is around it.

The hashes decide: a record whose hash belongs to its payload is as it was written. Pure: records in, a finding out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from client.audit.records import GENESIS
from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from client.audit.records import Link


class Happened(StrEnum):
    """What was done to a log."""

    EDITED = "edited"
    DELETED = "deleted"
    CUT_OFF = "cut off"
    MOVED = "moved"
    INSERTED = "inserted"
    DUPLICATED = "duplicated"
    TRUNCATED = "truncated"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class Finding:
    """What happened to which record: its line in the export, its number, and a sentence for people."""

    happened: Happened
    line: int
    seq: int | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Rest:
    """What stands behind the first record that doesn't fit.

    Attributes:
        next: the record right behind.
        wanted: the one that should stand in its place, as it was written, found further down.
        strayed: a record further down that gives itself the wanted number, though it isn't as it was written.

    """

    next: Link | None = None
    wanted: Link | None = None
    strayed: Link | None = None


def look_behind(rest: Iterable[Link], *, seq: int, head: str) -> Rest:
    """Read on to the end for what explains the place of record `seq` behind the hash `head`; constant memory."""
    following = wanted = strayed = None
    for link in rest:
        following = following or link
        if wanted is None and link.follows(seq=seq, head=head):
            wanted = link
        if strayed is None and link.seq == seq and not link.is_sound:
            strayed = link
    return Rest(following, wanted, strayed)


def explain(bad: Link, rest: Rest, *, good: Sequence[str], before: Link | None, chain: str | None) -> Finding:
    """Say what happened.

    Args:
        bad: the first record that doesn't fit.
        rest: what stands behind it.
        good: the hashes of the records that fit so far; `bad` should be the next one.
        before: the last of those.
        chain: the log's name.

    """
    seq = len(good) + 1
    if not bad.is_sound:
        return _explain_changed(bad, rest, seq)
    if chain is not None and bad.said.get("chain") != chain:
        return _explain_foreign(bad, seq, chain)
    if bad.seq < seq:
        return _explain_too_low(bad, rest, good, before)
    if rest.wanted is not None:
        return _explain_misplaced(bad, rest.wanted, seq)
    if bad.seq > seq:
        return _missing(bad, seq)
    return _explain_unlinked(bad, rest, seq, before, head=good[-1] if good else GENESIS)


def _explain_changed(bad: Link, rest: Rest, seq: int) -> Finding:
    if rest.next is not None and rest.wanted is rest.next and bad.seq != seq:
        return _inserted(bad, seq)
    if bad.seq > seq and rest.strayed is not None:
        sentence = _("records {seq} and {other} were swapped: each stands in the place of the other")
        return Finding(Happened.MOVED, bad.line, seq, sentence.format(seq=seq, other=bad.seq))
    if rest.wanted is not None:
        return _inserted(bad, seq)
    return Finding(Happened.EDITED, bad.line, bad.shown_seq or seq, _("its content was changed after it was written"))


def _explain_foreign(bad: Link, seq: int, chain: str) -> Finding:
    happened = Happened.REPLACED if seq == 1 else Happened.INSERTED
    sentence = _("a record of the log of {found} stands in the log of {chain}")
    return Finding(happened, bad.line, bad.shown_seq, sentence.format(found=bad.said.get("chain"), chain=chain))


def _explain_too_low(bad: Link, rest: Rest, good: Sequence[str], before: Link | None) -> Finding:
    if bad.seq >= 1 and good[bad.seq - 1] == bad.hash:
        sentence = _("it is a copy of record {seq}").format(seq=bad.seq)
        return Finding(Happened.DUPLICATED, bad.line, bad.shown_seq, sentence)
    is_rival = before is not None and bad.seq == before.seq and bad.prev_hash == before.prev_hash
    if is_rival and before is not None and rest.next is not None and rest.next.prev_hash == bad.hash:
        return _inserted(before, before.seq)
    return _inserted(bad, bad.shown_seq or bad.seq)


def _explain_misplaced(bad: Link, wanted: Link, seq: int) -> Finding:
    if bad.seq == seq:
        return _inserted(bad, seq)
    sentence = _("record {seq} stands in line {line}, behind record {other}: their order was changed")
    return Finding(Happened.MOVED, bad.line, seq, sentence.format(seq=seq, line=wanted.line, other=bad.seq))


def _missing(bad: Link, seq: int) -> Finding:
    last = bad.seq - 1
    if last == seq:
        sentence = _("record {seq} was deleted").format(seq=seq)
    else:
        sentence = _("records {seq} to {last} were deleted").format(seq=seq, last=last)
    return Finding(Happened.DELETED, bad.line, seq, sentence)


def _explain_unlinked(bad: Link, rest: Rest, seq: int, before: Link | None, *, head: str) -> Finding:
    """The number is right and the record as it was written: it or the one before was written anew, hash and all."""
    behind = rest.next
    goes_on = behind is None or behind.prev_hash == bad.hash
    if bad.prev_hash == head or before is None or not goes_on:
        sentence = _("it was changed after it was written")
        return Finding(Happened.EDITED, bad.line, bad.shown_seq, sentence)
    sentence = _("it was written anew, with a new hash: record {next} still names the old one").format(next=seq)
    return Finding(Happened.EDITED, before.line, before.seq, sentence)


def _inserted(link: Link, seq: int) -> Finding:
    sentence = _("it was put in between records that follow each other without it")
    return Finding(Happened.INSERTED, link.line, link.shown_seq or seq, sentence)
