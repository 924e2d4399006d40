"""Two texts side by side, with what differs between them marked. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Final

_WORDS = re.compile(r"\s+|[^\s]+")
# What one comparison may cost, in steps of the matcher: some tenths of a second. What repeats itself costs the most, up
# to the third power of its length, and whoever writes the texts chooses that.
_MOST_STEPS: Final = 10_000_000

_Opcode = tuple[str, int, int, int, int]


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


@dataclass(frozen=True, slots=True)
class Sides:
    """Both texts, line by line.

    ``is_rough``: they would have taken too long, so that some changed lines stand beside others than their own, or are
    without marks at their words.
    """

    lines: tuple[Line, ...]
    is_rough: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)


def beside(left: str, right: str) -> Sides:
    """The lines of both, the same ones beside each other; of lines that changed, the words that did."""
    matching = _Matching()
    before, after = left.splitlines(), right.splitlines()
    found: list[Line] = []
    for tag, a, b, c, d in matching.opcodes(before, after):
        if tag == "equal":
            found += [Line((Piece(text),), (Piece(text),)) for text in before[a:b]]
        else:
            found += _changed(before[a:b], after[c:d], matching)
    return Sides(tuple(found), is_rough=matching.is_rough)


class _Matching:
    """What is the same in two sequences, for as long as there are steps left for it."""

    def __init__(self) -> None:
        self.is_rough = False
        self._left = _MOST_STEPS

    def opcodes(self, before: Sequence[str], after: Sequence[str]) -> list[_Opcode]:
        """As of ``SequenceMatcher``; once it would take too long, only what both begin and end with is the same."""
        head = _same(zip(before, after, strict=False))
        rest = min(len(before), len(after)) - head
        tail = min(rest, _same(zip(reversed(before), reversed(after), strict=False)))
        a, b, c, d = head, len(before) - tail, head, len(after) - tail
        found: list[_Opcode] = [("equal", 0, head, 0, head)] if head else []
        found += [(tag, a + i, a + j, c + k, c + m) for tag, i, j, k, m in self._middle(before[a:b], after[c:d])]
        return [*found, ("equal", b, len(before), d, len(after))] if tail else found

    def _middle(self, before: Sequence[str], after: Sequence[str]) -> list[_Opcode]:
        steps = _most_steps(before, after)
        if steps <= self._left:
            self._left -= steps
            return list(SequenceMatcher(None, before, after, autojunk=False).get_opcodes())
        self.is_rough = True
        return [("replace", 0, len(before), 0, len(after))]


def _most_steps(before: Sequence[str], after: Sequence[str]) -> int:
    """The matcher looks at each pair of the same items, and does so again for what is left of the shorter sequence."""
    often = Counter(after)
    return (len(before) + sum(often[each] for each in before)) * min(len(before), len(after))


def _same(pairs: Iterator[tuple[str, str]]) -> int:
    return sum(1 for _pair in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _changed(before: Sequence[str], after: Sequence[str], matching: _Matching) -> Iterator[Line]:
    for old, new in zip_longest(before, after, fillvalue=""):
        yield Line(*_pieces(old, new, matching), differs=True)


def _pieces(old: str, new: str, matching: _Matching) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    left: list[Piece] = []
    right: list[Piece] = []
    for tag, a, b, c, d in matching.opcodes(before, after):
        if a < b:
            left.append(Piece("".join(before[a:b]), tag != "equal"))
        if c < d:
            right.append(Piece("".join(after[c:d]), tag != "equal"))
    return tuple(left), tuple(right)
