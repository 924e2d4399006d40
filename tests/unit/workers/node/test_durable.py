"""What the agent notes on its disk, and what becomes of it when the disk or the process fails."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.workers.node.kit import MemoryRestarter
from workers.node.courier import Outbox
from workers.node.disk.tombstones import Tombstones
from workers.node.durable import read_json
from workers.node.engines.book import Book
from workers.node.health.recycle import Recycler
from workers.node.health.references import References
from workers.node.ledger import Ledger
from workers.node.taint import TaintMark

# Everything that reads notes, given the file that it reads.
READERS: dict[str, Callable[[Path], object]] = {
    "lk-a.json": lambda path: Ledger(path.parent).entry("lk-a"),
    "lk-b.json": lambda path: References(path.parent).of("lk-b"),
    "lk-c.json": lambda path: Tombstones(path.parent, clock=lambda: 0.0).names() or None,
    "1.json": lambda path: Outbox(path.parent).pending() or None,
    "taint.json": lambda path: TaintMark(path).of("boot-1"),
    "recycled.json": lambda path: Recycler(MemoryRestarter(), path).is_restarting("boot-1") or None,
    "vllm.json": lambda path: Book(path, kind="vllm").root_of("lk-a"),
}


def fail(number: int) -> Callable[[Path], bytes]:
    def read(_: Path) -> bytes:
        raise OSError(number, os.strerror(number))

    return read


@pytest.mark.parametrize("name", READERS)
def test_a_note_that_the_disk_has_lost_is_as_good_as_a_damaged_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text("{}")
    monkeypatch.setattr(Path, "read_bytes", fail(errno.EIO))
    assert READERS[name](tmp_path / name) is None


@pytest.mark.parametrize("opened", [Ledger, References, Outbox, lambda folder: Tombstones(folder, clock=lambda: 0.0)])
def test_what_a_killed_process_was_about_to_write_is_cleared(opened: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / ".lk-a.json.tmp").write_text("{")
    (tmp_path / "lk-b.json").write_text("{}")
    opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lk-b.json"]


def test_a_note_that_can_not_be_read_for_another_reason_is_no_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_bytes", fail(errno.EACCES))
    with pytest.raises(PermissionError):
        read_json(tmp_path / "a.json")
