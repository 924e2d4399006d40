import asyncio
import contextlib
import errno
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from gateway.routing.current import CurrentSnapshot
from gateway.routing.disk import CopyRefused, DiskCopy
from gateway.routing.snapshot import RoutingSnapshot
from tests.unit.gateway.worlds import ACME_KEY, V1, V2, World, acme_world, shared_row

DATABASE = "postgresql://lorekeeper_gateway:secret@db:5432/lorekeeper"


@pytest.fixture
def copy(tmp_path: Path) -> DiskCopy:
    return DiskCopy(tmp_path, database_url=DATABASE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "routing.jsonl"


def write(copy: DiskCopy, snapshot: RoutingSnapshot, *, age_s: float = 0.0) -> None:
    asyncio.run(copy.write(snapshot, age_s=age_s))


def rich_world() -> World:
    world = acme_world()
    world.aliases[0] = ("acme", "support", V1, 1, V2, 500, "salt", ["acme"], ["zed"], V2, 100)
    world.aliases.append(shared_row("ours"))
    world.aliases.append(shared_row("split", split=(V2, 500, "salt", [], ["zed"], None, 0)))
    world.residencies[0] = (*world.residencies[0], "cpu")
    world.rules.append(("acme", 60, None, 4, None, ["base"], False))
    world.cold_rules.append(("base", "", "wait", 5.0, None))
    return world


def test_what_was_written_is_read_back_whole(copy: DiskCopy, path: Path) -> None:
    snapshot = rich_world().snapshot()
    write(copy, snapshot, age_s=30)
    kept = copy.load()
    assert kept is not None
    assert kept.snapshot == snapshot
    assert kept.snapshot.residencies[V1][0].tier == "cpu"
    assert 30 <= kept.age_s < 60
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_neither_keys_nor_the_databases_password_are_in_it(copy: DiskCopy, path: Path) -> None:
    write(copy, rich_world().snapshot())
    assert ACME_KEY.encode() not in path.read_bytes()
    assert b"secret@" not in path.read_bytes()


def test_without_a_copy_there_is_none(copy: DiskCopy) -> None:
    assert copy.load() is None


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def without_a_row(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join((*lines[:2], *lines[3:]))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a bit": flip,
    "a line": without_a_row,
    "its end": lambda content: content[:-10],
    "its last line": lambda content: b"".join(content.splitlines(keepends=True)[:-1]),
    "everything": lambda _content: b"",
    "its form": lambda _content: b"[]\n{}\n",
}


@pytest.mark.parametrize("what", list(DAMAGES))
def test_a_copy_that_lost_something_is_refused(copy: DiskCopy, path: Path, what: str) -> None:
    write(copy, rich_world().snapshot())
    path.write_bytes(DAMAGES[what](path.read_bytes()))
    with pytest.raises(CopyRefused, match=r"damaged|another form"):
        copy.load()


@pytest.mark.parametrize(
    ("url", "is_foreign"),
    [
        ("postgresql://lorekeeper_gateway:secret@db:5432/other", True),
        ("postgresql://lorekeeper_gateway:secret@elsewhere:5432/lorekeeper", True),
        ("postgresql://lorekeeper_gateway:changed@db:5432/lorekeeper", False),
    ],
)
def test_a_copy_of_another_database_is_refused(copy: DiskCopy, tmp_path: Path, url: str, is_foreign: bool) -> None:
    write(copy, acme_world().snapshot())
    other = DiskCopy(tmp_path, database_url=url)
    with pytest.raises(CopyRefused, match="another database") if is_foreign else contextlib.nullcontext():
        assert other.load() is not None


@pytest.mark.parametrize("mode", [0o640, 0o602])
def test_a_copy_that_others_could_have_written_or_read_is_refused(copy: DiskCopy, path: Path, mode: int) -> None:
    write(copy, acme_world().snapshot())
    path.chmod(mode)
    with pytest.raises(CopyRefused, match="chmod 600"):
        copy.load()


def test_a_newer_form_is_refused(copy: DiskCopy, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.routing.disk._VERSION", 2)
    write(copy, acme_world().snapshot())
    monkeypatch.undo()
    with pytest.raises(CopyRefused, match="another form"):
        copy.load()


def test_a_write_that_fails_leaves_the_copy_there_is(
    copy: DiskCopy, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(copy, rich_world().snapshot())
    before = path.read_bytes()

    def is_full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", is_full)
    with pytest.raises(OSError, match="No space"):
        write(copy, acme_world().snapshot())
    monkeypatch.undo()
    assert path.read_bytes() == before
    write(copy, acme_world().snapshot())
    assert copy.load() is not None


@asynccontextmanager
async def keeping(copy: DiskCopy, current: CurrentSnapshot) -> AsyncIterator[None]:
    task = asyncio.create_task(copy.keep(current))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110  a file has no event
            await asyncio.sleep(0.005)


def serves(copy: DiskCopy, version_id: object) -> bool:
    kept = copy.load()
    return kept is not None and any(version.may_be_served for version in kept.snapshot.versions.values()
                                    if version.id == version_id)  # fmt: skip


async def test_what_comes_in_force_is_kept_but_not_at_every_change_and_a_revocation_at_once(copy: DiskCopy) -> None:
    current = CurrentSnapshot()
    current.publish(acme_world().snapshot())
    async with keeping(copy, current):
        await until(lambda: serves(copy, V1))
        world = acme_world()
        world.aliases[0] = ("acme", "support", V2, 2)
        current.publish(world.snapshot())
        await asyncio.sleep(0.1)
        kept = copy.load()
        assert kept is not None
        assert kept.snapshot == acme_world().snapshot(), "the copy rests after it was written"
        current.revoke(V1)
        await until(lambda: not serves(copy, V1))
        kept = copy.load()
        assert kept is not None
        assert kept.snapshot == current.get()


async def test_what_was_read_from_the_disk_is_not_written_back(copy: DiskCopy) -> None:
    current = CurrentSnapshot()
    current.start_from(acme_world().snapshot(), age_s=100)
    async with keeping(copy, current):
        await asyncio.sleep(0.05)
        assert copy.load() is None


async def test_a_revocation_is_kept_that_is_heard_before_the_database_was_read(copy: DiskCopy) -> None:
    await copy.write(acme_world().snapshot(), age_s=100)
    current = CurrentSnapshot()
    current.start_from(acme_world().snapshot(), age_s=100)
    async with keeping(copy, current):
        await asyncio.sleep(0.02)
        current.revoke(V1)
        await until(lambda: not serves(copy, V1))
    kept = copy.load()
    assert kept is not None
    assert kept.age_s >= 100, "it is no younger for that"


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the folder as another process would."""
    with (folder / "routing.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


async def test_one_process_at_a_time_writes(copy: DiskCopy, path: Path) -> None:
    current = CurrentSnapshot()
    current.publish(acme_world().snapshot())
    with lock(path.parent):
        async with keeping(copy, current):
            await asyncio.sleep(0.05)
            assert copy.load() is None


def make_file(path: Path) -> None:
    path.touch()


async def test_a_folder_that_cannot_be_used_is_no_reason_to_stop(tmp_path: Path) -> None:
    folder = tmp_path / "file" / "state"
    make_file(folder.parent)
    current = CurrentSnapshot()
    current.publish(acme_world().snapshot())
    copy = DiskCopy(folder, database_url=DATABASE)
    async with keeping(copy, current):
        await asyncio.sleep(0.02)
    with pytest.raises(CopyRefused, match="can't be read"):
        copy.load()


async def test_a_folder_that_cannot_be_locked_is_not_written_to_until_it_can(
    copy: DiskCopy, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    really = fcntl.flock
    faults = [OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))]

    def flock(descriptor: int, operation: int) -> None:
        if faults:
            raise faults.pop()
        really(descriptor, operation)

    monkeypatch.setattr("gateway.routing.disk.fcntl.flock", flock)
    monkeypatch.setattr("gateway.routing.disk._SHORTEST_REST_S", 0.01)
    current = CurrentSnapshot()
    current.publish(acme_world().snapshot())
    async with keeping(copy, current):
        await until(path.exists)
    assert [os.strerror(errno.ENOLCK) in record.getMessage() for record in caplog.records] == [True]
