import pytest

from client.lines import text_lines


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_are_whole_whatever_the_chunks(size: int) -> None:
    data = "eins\r\nzwei\u2028\x85\n\ndrü".encode()
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert list(text_lines(chunks)) == ["eins", "zwei\u2028\x85", "", "drü"]


def test_bytes_that_are_no_text_do_not_stop_the_reading() -> None:
    assert list(text_lines([b"\xff\n{}\n"])) == ["\ufffd", "{}"]
