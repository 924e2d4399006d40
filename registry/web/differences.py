"""Two texts side by side, with what differs between them marked. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

_WORDS = re.compile(r"\s+|[^\s]+")


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line of each text, as pieces; ``differs`` if they are not the same."""

    left: tuple[Piece, ...]
    right: tuple[Piece, ...]
    differs: bool = False


def beside(left: str, right: str) -> list[Line]:
    """The lines of both, the same ones beside each other; of lines that changed, the words that did."""
    before, after = left.splitlines(), right.splitlines()
    found: list[Line] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            found += [Line((Piece(text),), (Piece(text),)) for text in before[a:b]]
        else:
            found += _changed(before[a:b], after[c:d])
    return found


def _changed(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    for old, new in zip_longest(before, after, fillvalue=""):
        yield Line(*_pieces(old, new), differs=True)


def _pieces(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    left: list[Piece] = []
    right: list[Piece] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if a < b:
            left.append(Piece("".join(before[a:b]), tag != "equal"))
        if c < d:
            right.append(Piece("".join(after[c:d]), tag != "equal"))
    return tuple(left), tuple(right)
