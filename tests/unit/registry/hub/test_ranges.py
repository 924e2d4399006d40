import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.hub.ranges import ByteRange, RangeNotSatisfiable, parse_range


@pytest.mark.parametrize(
    ("header", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=2-5", 2, 5),
        ("bytes=2-", 2, 9),
        ("bytes=-3", 7, 9),
        ("bytes=-30", 0, 9),
        ("bytes=2-99", 2, 9),
    ],
)
def test_one_range_is_cut_to_the_file(header: str, first: int, last: int) -> None:
    found = parse_range(header, size=10)
    assert found == ByteRange(first, last, 10)
    assert str(found) == f"bytes {first}-{last}/10"


@pytest.mark.parametrize("header", ["", "bytes=", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes=a-b"])
def test_what_is_no_single_range_asks_for_the_whole(header: str) -> None:
    assert parse_range(header, size=10) is None


@pytest.mark.parametrize(("header", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-0", 0)])
def test_a_range_behind_the_end_is_refused(header: str, size: int) -> None:
    with pytest.raises(RangeNotSatisfiable):
        parse_range(header, size=size)


@given(header=st.from_regex(r"\Abytes=\d{0,4}-\d{0,4}\Z"), size=st.integers(0, 5000))
def test_a_range_never_leaves_the_file(header: str, size: int) -> None:
    try:
        found = parse_range(header, size=size)
    except RangeNotSatisfiable:
        return
    if found is not None:
        assert 0 <= found.first <= found.last < size
        assert found.length <= size
