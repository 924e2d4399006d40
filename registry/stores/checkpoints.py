"""Where signed checkpoints of the audit log lie: small objects beside the artifacts that nothing here can overwrite.

Their keys are `audit/<chain>/<seq>-<key>.json`, so that they sort by the number of the record they speak of. The rest
of the registry has no way to delete one; where the bucket has an object lock, the store refuses it to everybody.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from registry.stores.errors import BadKey, ObjectMissing, StoreError, StoreRefused, StoreUnavailable

MAX_CHECKPOINT_BYTES: Final = 64 * 1024
_SEQ_DIGITS: Final = 16
_KEY_ID_DIGITS: Final = 16
_KEY = re.compile(r"audit/[a-z0-9][a-z0-9-]{0,62}/[0-9]{16}-[0-9a-f]{16}\.json", re.ASCII)


@dataclass(frozen=True, slots=True)
class KeptCheckpoint:
    """What `CheckpointStore.put` did: whether the object is new, and until when the store holds it locked."""

    is_new: bool
    locked_until: datetime | None = None


class CheckpointStore(Protocol):
    """Every method may raise `StoreUnavailable` (retryable), `StoreRefused`, and `BadKey` for a key of another form."""

    def put(self, key: str, body: bytes) -> KeptCheckpoint:
        """Keep `body` under `key`; if something lies there already, that stays."""
        ...

    def read(self, key: str) -> bytes:
        """The object, at most `MAX_CHECKPOINT_BYTES` of it. Raises `ObjectMissing`."""
        ...

    def first_after(self, chain: str, place: str) -> str | None:
        """The key of the first checkpoint of `chain` that sorts behind `place` (a key or `after_seq`), or None."""
        ...


def checkpoint_key(*, chain: str, seq: int, key_id: str) -> str:
    """Where the checkpoint of record `seq` of `chain` lies that was signed by `key_id`."""
    return check_checkpoint_key(f"{_place(chain, seq)}-{key_id[:_KEY_ID_DIGITS]}.json")


def check_checkpoint_key(key: str) -> str:
    """Return `key` if it is the key of a checkpoint; else raise `BadKey`."""
    if not is_checkpoint_key(key):
        raise BadKey(f"{key!a} is not the key of a checkpoint", field="key")
    return key


def is_checkpoint_key(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


def after_seq(chain: str, seq: int) -> str:
    """A text that sorts behind every key of this record of the chain, and before those of the next."""
    return f"{_place(chain, seq)}~"


def folder_of(chain: str) -> str:
    """What the keys of all checkpoints of a chain begin with."""
    return f"audit/{chain}/"


def _place(chain: str, seq: int) -> str:
    return f"{folder_of(chain)}{seq:0{_SEQ_DIGITS}d}"


class FolderCheckpoints:
    """Checkpoints as files below `folder`, each put in place whole by a link that never overwrites."""

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)

    def put(self, key: str, body: bytes) -> KeptCheckpoint:
        target = self._folder / check_checkpoint_key(key)
        with _disk_errors():
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".") as temporary:
                temporary.write(body)
                temporary.flush()
                os.fsync(temporary.fileno())
                os.fchmod(temporary.fileno(), 0o440)
                try:
                    os.link(temporary.name, target)
                except FileExistsError:
                    return KeptCheckpoint(is_new=False)
            for folder in (target.parent, target.parent.parent, self._folder):
                _sync(folder)
        return KeptCheckpoint(is_new=True)

    def read(self, key: str) -> bytes:
        with _disk_errors():
            try:
                with (self._folder / check_checkpoint_key(key)).open("rb") as file:
                    return file.read(MAX_CHECKPOINT_BYTES)
            except FileNotFoundError as error:
                raise ObjectMissing(key) from error

    def first_after(self, chain: str, place: str) -> str | None:
        with _disk_errors():
            found = [f"{folder_of(chain)}{path.name}" for path in (self._folder / folder_of(chain)).glob("*.json")]
        return min((key for key in found if key > place and is_checkpoint_key(key)), default=None)


def _sync(folder: Path) -> None:
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
