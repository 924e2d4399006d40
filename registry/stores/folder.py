"""An object store in a local folder, for one machine or a shared file system. It gives the same promises as S3."""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast
from uuid import uuid4

from registry.stores.checked_stream import CheckedStream
from registry.stores.errors import ObjectMissing, StoreError, StoreRefused, StoreSizeMismatch, StoreUnavailable
from registry.stores.joined_stream import JoinedStream
from registry.stores.ports import PresignedPut, StoredObject, StoredPart, check_key, digest_in
from registry.stores.tickets import Method, Ticket, read_ticket, write_ticket

_INCOMING = "incoming"
_PARTS = "parts"
_UPLOAD_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_PART = re.compile(r"([0-9]{5})\.([0-9a-f]{64})", re.ASCII)


class FolderStore:
    """Objects as files below `folder`, each put in place whole by a link that never overwrites.

    Args:
        folder: made by `ensure_ready`; must be one file system.
        public_url: where the web process answers, without a slash at the end; tickets point at `<public_url>/store/…`.
        secret: seals the tickets; every web process needs the same.

    """

    def __init__(self, *, folder: Path | str, public_url: str, secret: bytes) -> None:
        self._folder = Path(folder)
        self._public_url = public_url.rstrip("/")
        self._secret = secret

    def ensure_ready(self) -> None:
        with _disk_errors():
            (self._folder / _INCOMING / _PARTS).mkdir(parents=True, exist_ok=True)
            (self._folder / "artifacts").mkdir(exist_ok=True)
            _sync_folder(self._folder)

    def presign_put(self, key: str, *, size: int, sha256: str, expires_s: int) -> PresignedPut:
        check_key(key, sha256=sha256)
        url = self._address(Ticket(method="PUT", key=key, expires=_after(expires_s), size=size, sha256=sha256))
        return PresignedPut(url=url, headers={"Content-Length": str(size), "If-None-Match": "*"})

    def presign_get(self, key: str, *, expires_s: int) -> str:
        digest_in(key)
        return self._address(Ticket(method="GET", key=key, expires=_after(expires_s)))

    def accept_put(self, token: str, stream: BinaryIO, *, content_length: int | None) -> bool:
        """Do what a presigned PUT asks for; returns False if the object was there already (answer 412).

        Raises:
            TicketError, TicketExpired: the address doesn't hold (answer 403).
            StoreDigestMismatch, StoreSizeMismatch: the body is not what was announced (answer 400); nothing was kept.
            ObjectMissing: a part of an upload that is over (answer 404).

        """
        ticket = self._read(token, "PUT")
        if not ticket.upload and self.stat(ticket.key) is not None:
            return False
        if content_length != ticket.size:
            raise StoreSizeMismatch(f"{ticket.size} bytes were announced, the request has {content_length}")
        if ticket.upload:
            self._store_part(ticket, stream)
            return True
        return self._store(ticket.key, stream, size=ticket.size, sha256=ticket.sha256)

    def accept_get(self, token: str) -> StoredObject:
        """Do what a presigned GET asks for: check it and say what to send; read it with `open`.

        Raises:
            TicketError, TicketExpired: the address doesn't hold (answer 403).
            ObjectMissing: nothing lies there (answer 404).

        """
        key = self._read(token, "GET").key
        stored = self.stat(key)
        if stored is None:
            raise ObjectMissing(key)
        return stored

    def stat(self, key: str) -> StoredObject | None:
        sha256 = digest_in(key)
        with _disk_errors():
            try:
                size = self._path(key).stat().st_size
            except FileNotFoundError:
                return None
        return StoredObject(key=key, size=size, sha256=sha256)

    def put_stream(self, key: str, stream: BinaryIO, *, size: int, sha256: str) -> None:
        check_key(key, sha256=sha256)
        if self.stat(key) is None:
            self._store(key, stream, size=size, sha256=sha256)

    @contextmanager
    def open(self, key: str) -> Iterator[BinaryIO]:
        digest_in(key)
        with _disk_errors():
            try:
                file = self._path(key).open("rb")
            except FileNotFoundError as error:
                raise ObjectMissing(key) from error
        with file:
            yield file

    def delete(self, key: str) -> None:
        digest_in(key)
        with _disk_errors():
            self._path(key).unlink(missing_ok=True)

    def start_parts(self, key: str) -> str:
        digest_in(key)
        upload_id = uuid4().hex
        with _disk_errors():
            self._parts_folder(key, upload_id).mkdir()
        return upload_id

    def presign_part(
        self, key: str, upload_id: str, *, number: int, size: int, sha256: str, expires_s: int
    ) -> PresignedPut:
        digest_in(key)
        ticket = Ticket(
            method="PUT",
            key=key,
            expires=_after(expires_s),
            size=size,
            sha256=sha256,
            upload=upload_id,
            part=number,
        )
        return PresignedPut(url=self._address(ticket), headers={"Content-Length": str(size)})

    def list_parts(self, key: str, upload_id: str) -> tuple[StoredPart, ...]:
        with _disk_errors(), _parts_may_vanish(key):
            files = self._part_files(key, upload_id)
            return tuple(
                StoredPart(number=number, size=path.stat().st_size, tag=path.name, sha256=path.name.partition(".")[2])
                for number, path in sorted(files.items())
            )

    def complete_parts(self, key: str, upload_id: str, parts: Sequence[StoredPart]) -> None:
        if self.stat(key) is not None:
            return
        folder, size = self._parts_folder(key, upload_id), sum(part.size for part in parts)
        paths = [folder / f"{part.number:05d}.{part.sha256}" for part in parts]
        try:
            with _disk_errors(), _parts_may_vanish(key), JoinedStream(paths) as joined:
                self._store(key, cast("BinaryIO", joined), size=size, sha256=digest_in(key))
        except (ObjectMissing, StoreUnavailable):
            # Another may have completed it meanwhile, and taken the parts away.
            if self.stat(key) is None:
                raise
        self.abort_parts(key, upload_id)

    def abort_parts(self, key: str, upload_id: str) -> None:
        with _disk_errors():
            shutil.rmtree(self._parts_folder(key, upload_id), ignore_errors=True)

    def remove_abandoned(self, *, before: datetime) -> int:
        removed = 0
        with _disk_errors():
            incoming = self._folder / _INCOMING
            for path in (*incoming.iterdir(), *(incoming / _PARTS).iterdir()):
                if path.name != _PARTS and _begun_before(path, before.timestamp()):
                    removed += 1
                    _remove(path)
        return removed

    def _parts_folder(self, key: str, upload_id: str) -> Path:
        """Where the parts of an upload lie; the folder's name binds the upload to its key."""
        sha256 = digest_in(key)
        if _UPLOAD_ID.fullmatch(upload_id) is None:
            raise ObjectMissing(key)
        return self._folder / _INCOMING / _PARTS / f"{upload_id}-{sha256}"

    def _part_files(self, key: str, upload_id: str) -> dict[int, Path]:
        """The file of each part that has arrived."""
        found = list(self._parts_folder(key, upload_id).iterdir())
        named = ((_PART.fullmatch(path.name), path) for path in found)
        return {int(match.group(1)): path for match, path in named if match is not None}

    def _store_part(self, ticket: Ticket, stream: BinaryIO) -> None:
        folder = self._parts_folder(ticket.key, ticket.upload)
        checked = CheckedStream(stream, size=ticket.size, sha256=ticket.sha256)
        with _disk_errors():
            if not folder.is_dir():
                raise ObjectMissing(ticket.key)
            with tempfile.NamedTemporaryFile(dir=folder) as temporary:
                checked.drain_to(temporary.file)
                temporary.flush()
                # Not synced: the whole is read and checked again before it gets its name.
                target = folder / f"{ticket.part:05d}.{ticket.sha256}"
                _link(Path(temporary.name), target)
            for older in folder.glob(f"{ticket.part:05d}.*"):
                if older != target:
                    older.unlink(missing_ok=True)

    def _store(self, key: str, stream: BinaryIO, *, size: int, sha256: str) -> bool:
        checked = CheckedStream(stream, size=size, sha256=sha256)
        with _disk_errors(), tempfile.NamedTemporaryFile(dir=self._folder / _INCOMING) as temporary:
            checked.drain_to(temporary.file)
            temporary.flush()
            os.fsync(temporary.fileno())
            os.fchmod(temporary.fileno(), 0o440)
            return self._put_in_place(Path(temporary.name), self._path(key))

    def _put_in_place(self, source: Path, target: Path) -> bool:
        """Link, since unlike a rename it fails where something is already; then make the name itself durable."""
        for folder in (target.parent.parent, target.parent):
            folder.mkdir(parents=True, exist_ok=True)
            _sync_folder(folder.parent)
        linked = _link(source, target)
        if linked:
            _sync_folder(target.parent)
        return linked

    def _path(self, key: str) -> Path:
        return self._folder / key

    def _address(self, ticket: Ticket) -> str:
        return f"{self._public_url}/store/{write_ticket(self._secret, ticket)}"

    def _read(self, token: str, method: Method) -> Ticket:
        return read_ticket(self._secret, token, method=method, now=datetime.now(UTC))


def _after(seconds: int) -> int:
    return int(time.time()) + seconds


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    return True


@contextmanager
def _parts_may_vanish(key: str) -> Iterator[None]:
    """An upload that is over has no files; one that ends meanwhile loses them one by one."""
    try:
        yield
    except FileNotFoundError as error:
        raise ObjectMissing(key) from error


def _begun_before(path: Path, moment: float) -> bool:
    try:
        return path.stat().st_mtime < moment
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except PermissionError as error:
        raise StoreRefused(f"the store's folder refuses: {error.strerror}") from error
    except OSError as error:
        raise StoreUnavailable(f"the store's folder fails: {error.strerror or error}") from error
