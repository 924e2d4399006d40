import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from registry.web.differences import Piece, beside

_FAR_TOO_MANY = 100_000_000


@pytest.fixture
def steps() -> Iterator[Callable[[], int]]:
    """How often anything was called so far: the matcher does so once for each pair that it looks at."""
    called = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal called
        called += event == "c_call"
        assert called < _FAR_TOO_MANY, "it would go on for long"

    sys.setprofile(count)
    yield lambda: called
    sys.setprofile(None)


def of(pieces: tuple[Piece, ...]) -> str:
    return "".join(piece.text for piece in pieces)


def test_what_is_the_same_stands_beside_itself() -> None:
    lines = beside("one\ntwo", "one\ntwo")
    assert [line.differs for line in lines] == [False, False]


def test_of_a_changed_line_the_words_that_changed_are_marked() -> None:
    (line,) = beside("rank is 8", "rank is 16")
    assert line.left == (Piece("rank is "), Piece("8", differs=True))
    assert line.right == (Piece("rank is "), Piece("16", differs=True))


def test_a_line_that_is_new_stands_beside_nothing() -> None:
    first, second = beside("one", "one\ntwo")
    assert not first.differs
    assert (second.left, second.right) == ((), (Piece("two", differs=True),))


def test_what_is_too_much_to_compare_is_shown_without_more_work(steps: Callable[[], int]) -> None:
    repeated = [str(number % 2) for number in range(1_000)]
    texts = {
        "lines": ("\n".join(repeated), "\n".join(reversed([*repeated, "other", *repeated]))),
        "words": (" ".join(repeated), "new " + " ".join(reversed(repeated)) + " last"),
        "many lines of many words": (f"{'a b ' * 50}c\n" * 200, f"d {'b a ' * 50}\n" * 200),
    }
    for left, right in texts.values():
        sides = beside(left, right)
        assert sides.is_rough
        assert "\n".join(of(line.left) for line in sides).rstrip("\n") == left.rstrip("\n")
        assert "\n".join(of(line.right) for line in sides).rstrip("\n") == right.rstrip("\n")
    assert steps() < 3 * 10_000_000


def test_a_change_in_a_long_text_is_still_found() -> None:
    text = [f"line {number}" for number in range(5_000)]
    sides = beside("\n".join(text), "\n".join([*text[:2_000], "new", *text[2_000:]]))
    assert not sides.is_rough
    assert [line.right for line in sides if line.differs] == [(Piece("new", differs=True),)]
