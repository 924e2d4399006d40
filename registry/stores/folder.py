"""An object store in a local folder, for one machine or a shared file system. It gives the same promises as S3."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from registry.stores.checked_stream import CheckedStream
from registry.stores.errors import ObjectMissing, StoreError, StoreRefused, StoreSizeMismatch, StoreUnavailable
from registry.stores.ports import PresignedPut, StoredObject, check_key, digest_in
from registry.stores.tickets import Method, Ticket, read_ticket, write_ticket

ABANDONED_AFTER_S = 24 * 3600
_INCOMING = "incoming"


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
        """Make the folder, and remove what puts left behind that were killed long ago."""
        with _disk_errors():
            incoming = self._folder / _INCOMING
            incoming.mkdir(parents=True, exist_ok=True)
            (self._folder / "artifacts").mkdir(exist_ok=True)
            _sync_folder(self._folder)
            for path in incoming.iterdir():
                if path.stat().st_mtime < time.time() - ABANDONED_AFTER_S:
                    path.unlink(missing_ok=True)

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

        """
        ticket = self._read(token, "PUT")
        if self.stat(ticket.key) is not None:
            return False
        if content_length != ticket.size:
            raise StoreSizeMismatch(f"{ticket.size} bytes were announced, the request has {content_length}")
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
        try:
            os.link(source, target)
        except FileExistsError:
            return False
        _sync_folder(target.parent)
        return True

    def _path(self, key: str) -> Path:
        return self._folder / key

    def _address(self, ticket: Ticket) -> str:
        return f"{self._public_url}/store/{write_ticket(self._secret, ticket)}"

    def _read(self, token: str, method: Method) -> Ticket:
        return read_ticket(self._secret, token, method=method, now=datetime.now(UTC))


def _after(seconds: int) -> int:
    return int(time.time()) + seconds


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
