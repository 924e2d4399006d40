"""Reading an export once, from its first record to its last, and holding it against signed checkpoints."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, overload

from client.audit.diagnosis import Finding, Happened, explain, look_behind
from client.audit.records import GENESIS, Link, Unfit, read_link
from client.i18n import _

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from registry.signing.checkpoints import AuditCheckpoint

_HASH_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class BadRecord:
    """The first record that is not as it was written.

    Attributes:
        line: in the export, from 1; behind the last line if the end is missing.
        seq: the record's number, if it is known.
        code: the check that failed, in one word.
        happened: what was done (see `client.audit.diagnosis.Happened`).
        message: a sentence for people.

    """

    line: int
    seq: int | None
    code: str
    happened: str
    message: str


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """How many records are good, the hash of the last good one, and the first bad one.

    `checkpoints` says how many signed checkpoints agree, `signed_to` up to which record.
    """

    chain: str | None
    records: int
    head: str
    first_bad: BadRecord | None = None
    checkpoints: int = 0
    signed_to: int = 0

    @property
    def intact(self) -> bool:
        """Say whether every record fits."""
        return self.first_bad is None


def verify_export(
    lines: Iterable[str], *, chain: str | None = None, checkpoints: Iterable[AuditCheckpoint] = ()
) -> ChainVerdict:
    """Check an export (JSON Lines, oldest first) of the chain named `chain`, or of whichever it names first.

    Stops at the first bad record: behind it nothing can be trusted. `checkpoints` are those of this chain, their
    signatures checked before; without any, an end that was cut off can't be seen.
    """
    signed = sorted(checkpoints, key=lambda checkpoint: checkpoint.seq)
    links = (read_link(number, line) for number, line in enumerate(lines, start=1) if line.strip())
    walk = _Walk(chain if chain is not None or not signed else signed[0].chain)
    bad = walk.along(links)
    broken = _first_contradiction(signed, walk.good)
    # Where the chain itself tells which record it is, that says more.
    told_by_chain = bad is not None and broken is not None and bad.line <= walk.lines[broken.seq - 1]
    if broken is not None and not told_by_chain:
        return walk.verdict(_explain_contradiction(broken, signed, walk), signed)
    if bad is None and signed and signed[-1].seq > len(walk.good):
        bad = _explain_end(signed[-1], walk)
    return walk.verdict(bad, signed)


class _Hashes(Sequence[str]):
    """Hashes in hex, by the number of their record less one; in half the room, since a log may be long."""

    def __init__(self) -> None:
        self._raw = bytearray()

    def __len__(self) -> int:
        return len(self._raw) // _HASH_BYTES

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        start = range(len(self))[index] * _HASH_BYTES
        return self._raw[start : start + _HASH_BYTES].hex()

    def append(self, digest: str) -> None:
        self._raw += bytes.fromhex(digest)


class _Walk:
    """The way along the chain: the hash and the line of each record are kept, and the last record whole."""

    def __init__(self, chain: str | None) -> None:
        self.chain = chain
        self.good = _Hashes()
        self.lines = array("Q")
        self._before: Link | None = None

    def along(self, links: Iterator[Link]) -> BadRecord | None:
        """Go on until a record doesn't fit."""
        for link in links:
            head = self.good[-1] if self.good else GENESIS
            try:
                link.require_fit(seq=len(self.good) + 1, head=head, chain=self.chain)
            except Unfit as unfit:
                rest = look_behind(links, seq=len(self.good) + 1, head=head)
                found = explain(link, rest, good=self.good, before=self._before, chain=self.chain)
                return self._bad(found, unfit)
            self.chain = self.chain or str(link.said["chain"])
            self.good.append(link.hash)
            self.lines.append(link.line)
            self._before = link
        return None

    def verdict(self, bad: BadRecord | None, signed: Sequence[AuditCheckpoint]) -> ChainVerdict:
        """What is to be told; of the checkpoints those count that speak of good records."""
        good = len(self.good) if bad is None else bisect_left(self.lines, bad.line)
        agreed = [checkpoint.seq for checkpoint in signed if checkpoint.seq <= good]
        head = self.good[good - 1] if good else GENESIS
        return ChainVerdict(self.chain, good, head, bad, len(agreed), max(agreed, default=0))

    def _bad(self, found: Finding, unfit: Unfit) -> BadRecord:
        message = f"{unfit}; {found.sentence}"
        return BadRecord(found.line, found.seq, unfit.code, found.happened.value, message)


def _first_contradiction(signed: Sequence[AuditCheckpoint], good: Sequence[str]) -> AuditCheckpoint | None:
    return next(
        (checkpoint for checkpoint in signed if checkpoint.seq <= len(good) and not _agrees(checkpoint, good)), None
    )


def _agrees(checkpoint: AuditCheckpoint, good: Sequence[str]) -> bool:
    return good[checkpoint.seq - 1] == checkpoint.head and good[0] == checkpoint.first


def _explain_contradiction(broken: AuditCheckpoint, signed: Sequence[AuditCheckpoint], walk: _Walk) -> BadRecord:
    if walk.good[0] != broken.first:
        if signed[-1].seq > len(walk.good):
            return _begun_anew(signed[-1], walk)
        sentence = _("the whole log was replaced: it is not the one that was signed at {at}")
        return _unsigned(1, walk.lines[0], Happened.REPLACED, sentence.format(at=broken.signed_at))
    agreed = max((each.seq for each in signed if each.seq < broken.seq), default=0)
    sentence = _("records {first} to {last} were replaced: they are not those that were signed at {at}")
    text = sentence.format(first=agreed + 1, last=broken.seq, at=broken.signed_at)
    return _unsigned(agreed + 1, walk.lines[agreed], Happened.REPLACED, text)


def _explain_end(last: AuditCheckpoint, walk: _Walk) -> BadRecord:
    """The log is good as far as it goes, which is not as far as it was signed."""
    if not walk.good:
        sentence = _("the log was emptied: it had {last} records when it was signed at {at}")
        return _unsigned(1, 1, Happened.TRUNCATED, sentence.format(last=last.seq, at=last.signed_at))
    if walk.good[0] != last.first:
        return _begun_anew(last, walk)
    first = len(walk.good) + 1
    sentence = _("the end was cut off: records {first} to {last} were there when it was signed at {at}")
    text = sentence.format(first=first, last=last.seq, at=last.signed_at)
    return _unsigned(first, walk.lines[-1] + 1, Happened.CUT_OFF, text)


def _begun_anew(last: AuditCheckpoint, walk: _Walk) -> BadRecord:
    sentence = _("the log was emptied and begun anew: it had {last} other records when it was signed at {at}")
    return _unsigned(1, walk.lines[0], Happened.TRUNCATED, sentence.format(last=last.seq, at=last.signed_at))


def _unsigned(seq: int, line: int, happened: Happened, sentence: str) -> BadRecord:
    return BadRecord(line, seq, "checkpoint", happened.value, sentence)
