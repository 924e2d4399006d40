from registry.web.differences import Piece, beside


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
