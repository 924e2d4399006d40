import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.records import Spool
from gateway.records.segments import Batch
from tests.unit.gateway.records.kit import batch, ids

BOUND = 1024 * 1024


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Spool]]:
    """Make spools over one folder, each as if in a process of its own; all are closed in the end."""
    made: list[Spool] = []

    def one(bound_bytes: int = BOUND) -> Spool:
        made.append(Spool(tmp_path / "spool", bound_bytes=bound_bytes))
        return made[-1]

    yield one
    for spool in made:
        spool.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where they are."""
    (tmp_path / "spool").mkdir(mode=0o700)
    return tmp_path / "spool"


def drain(spool: Spool) -> list[str]:
    names: list[str] = []
    while (found := spool.next()) is not None:
        names += ids(found)
        spool.sent()
    return names


def test_what_was_kept_comes_back_in_order_and_is_gone_then(make: Callable[..., Spool], folder: Path) -> None:
    spool = make()
    assert spool.next() is None
    spool.keep(batch("a", "b"))
    spool.keep(batch("c"))
    assert spool.bytes > 0
    assert drain(spool) == ["a", "b", "c"]
    assert list(folder.iterdir()) == []
    assert drain(spool) == []
    assert spool.bytes == 0


def test_a_batch_stays_until_it_is_said_to_be_sent(make: Callable[..., Spool]) -> None:
    spool = make()
    spool.keep(batch("a"))
    assert ids(spool.next()) == ids(spool.next()) == ["a"]
    spool.close()
    assert drain(make()) == ["a"]


def test_files_are_for_nobody_else(make: Callable[..., Spool], folder: Path) -> None:
    spool = make()
    spool.keep(batch("a"))
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_another_process_writes_or_sends_is_left_to_it(make: Callable[..., Spool]) -> None:
    writing, sending, idle = (make() for _ in range(3))
    sending.keep(batch("sent"))
    assert ids(sending.next()) == ["sent"]
    writing.keep(batch("written"))
    assert idle.next() is None
    writing.close()
    assert drain(idle) == ["written"]
    assert ids(sending.next()) == ["sent"]


def test_what_a_killed_process_left_is_sent_by_the_next(make: Callable[..., Spool]) -> None:
    killed = os.fork()
    if killed == 0:
        make().keep(batch("a"))
        os.kill(os.getpid(), 9)
    os.waitpid(killed, 0)
    assert drain(make()) == ["a"]


def test_at_the_bound_the_oldest_go_and_are_counted(make: Callable[..., Spool], folder: Path) -> None:
    size = 4000
    spool = make(size)
    for number in range(30):
        spool.keep(batch(*(f"{number}-{each}-{os.urandom(8).hex()}" for each in range(3))))
        assert sum(path.stat().st_size for path in folder.iterdir()) <= size
    kept = drain(spool)
    assert kept[-1].startswith("29-2-")
    assert spool.dropped == 90 - len(kept) > 0


def test_a_file_that_is_damaged_or_foreign_holds_up_nothing(make: Callable[..., Spool], folder: Path) -> None:
    (folder / "00-foreign.records").write_bytes(b"something else")
    first, last = (make() for _ in range(2))
    first.keep(batch("a"))
    first.keep(batch("b"))
    first.close()
    (path,) = (each for each in folder.iterdir() if "foreign" not in each.name)
    path.write_bytes(path.read_bytes()[:-3])
    last.keep(batch("c"))
    assert drain(last) == ["a", "c"]
    assert sorted(each.suffix for each in folder.iterdir()) == [".unreadable"] * 2


def test_a_full_disk_keeps_nothing_by_halves(make: Callable[..., Spool], monkeypatch: pytest.MonkeyPatch) -> None:
    spool = make()
    spool.keep(batch("a"))
    write = os.write

    def write_half(file: int, data: memoryview) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "no space left on device")
        return write(file, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", write_half)
    with pytest.raises(OSError, match="no space"):
        spool.keep(batch("b"))
    monkeypatch.undo()
    spool.keep(batch("c"))
    assert drain(spool) == ["a", "c"]


def test_a_file_that_is_sent_while_it_is_found_is_not_sent_again(
    make: Callable[..., Spool], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (make() for _ in range(2))
    first.keep(batch("a"))
    first.close()
    lock = fcntl.flock

    def lock_late(file: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        assert drain(first) == ["a"]
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    assert second.next() is None


def test_a_batch_of_another_shape_is_kept_as_it_is(make: Callable[..., Spool]) -> None:
    spool = make()
    whole = batch("a")
    older = Batch(whole.table, whole.columns[:3], [line.rsplit(b",", 19)[0] for line in whole.lines])
    spool.keep(older)
    assert spool.next() == older


def test_a_file_in_the_making_is_not_found_by_others(
    make: Callable[..., Spool], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, looking = make(), make()
    lock = fcntl.flock

    def lock_late(file: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        assert looking.next() is None
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    writing.keep(batch("a"))
    writing.close()
    assert drain(looking) == ["a"]
    assert list(folder.iterdir()) == []


def test_a_file_that_cannot_be_begun_is_gone(
    make: Callable[..., Spool], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(_file: int, _data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    spool = make()
    monkeypatch.setattr(os, "write", is_full)
    with pytest.raises(OSError, match="no space"):
        spool.keep(batch("a"))
    assert list(folder.iterdir()) == []
    monkeypatch.undo()
    spool.keep(batch("b"))
    assert drain(spool) == ["b"]
