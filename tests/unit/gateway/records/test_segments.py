import io

import pytest

from gateway.records.segments import MAGIC, SegmentUnreadable, count_rows, pack, read_batches
from tests.unit.gateway.records.kit import batch, ids

WHOLE = MAGIC + pack(batch("a", "b")) + pack(batch("c"))


def read(data: bytes) -> list[str]:
    return [name for found in read_batches(io.BytesIO(data)) for name in ids(found)]


def read_what_is_whole(data: bytes) -> list[str]:
    names: list[str] = []
    with pytest.raises(SegmentUnreadable):
        for found in read_batches(io.BytesIO(data)):
            names += ids(found)
    return names


def test_what_was_packed_is_read_in_order() -> None:
    assert read(WHOLE) == ["a", "b", "c"]
    assert count_rows(io.BytesIO(WHOLE)) == 3


def test_a_file_cut_off_anywhere_gives_the_batches_before_the_cut() -> None:
    first = len(MAGIC + pack(batch("a", "b")))
    assert read(WHOLE[:first]) == ["a", "b"]
    for cut in range(first + 1, len(WHOLE)):
        assert read_what_is_whole(WHOLE[:cut]) == ["a", "b"], cut
    for cut in range(len(MAGIC)):
        assert read_what_is_whole(WHOLE[:cut]) == []


def test_a_changed_byte_of_a_body_is_noticed() -> None:
    for place in range(len(WHOLE) - 20, len(WHOLE)):
        changed = WHOLE[:place] + bytes([WHOLE[place] ^ 1]) + WHOLE[place + 1 :]
        assert read_what_is_whole(changed) == ["a", "b"], place


@pytest.mark.parametrize(
    "head",
    [
        b'{"table":"pg_authid","columns":["rolname"],"rows":1,"bytes":1,"crc":1}',
        b'{"table":"gateway_request","columns":["at) --"],"rows":1,"bytes":1,"crc":1}',
        b'{"table":"gateway_request","columns":["at"],"rows":1,"bytes":-1,"crc":1}',
        b'{"table":"gateway_request","columns":["at"],"rows":1,"bytes":"x","crc":1}',
        b"[]",
        b"{}",
        b"x" * 5000,
    ],
)
def test_a_head_that_names_what_is_not_known_is_refused(head: bytes) -> None:
    assert read_what_is_whole(MAGIC + pack(batch("a")) + head + b"\n" + b"0" * 100) == ["a"]
    assert count_rows(io.BytesIO(MAGIC + pack(batch("a")) + head + b"\n")) == 1
