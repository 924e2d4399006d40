"""The file of trusted keys, read again when it changes: keys come and go while what verifies goes on running."""

import logging
import os
import tempfile
from pathlib import Path

from registry.signing.errors import KeyFileError
from registry.signing.keys import TrustedKey, TrustedKeys

logger = logging.getLogger(__name__)

_State = tuple[int, int, int]


class TrustFile:
    """The keys of a file, PEM or JSON, as `TrustedKeys.from_text` reads them.

    A change that can't be read is logged, and the keys that were trusted before stay: half a file that is just being
    written neither stops a node nor lets it forget that a key was revoked.
    """

    def __init__(self, path: Path) -> None:
        """Read it for the first time.

        Raises:
            KeyFileError: it can't be read, or holds no keys.

        """
        self._path = path
        self._state = self._look()
        self._keys = self._read()

    def find(self, key_id: str) -> TrustedKey:
        """The trusted key with this id, as the file says now. Raises `UnknownKey`, or `KeyRevoked`."""
        self._refresh()
        return self._keys.find(key_id)

    def _refresh(self) -> None:
        try:
            state = self._look()
            if state == self._state:
                return
            self._keys = self._read()
            self._state = state
        except KeyFileError:
            logger.exception("the trusted keys stay as they were")

    def _look(self) -> _State:
        try:
            status = self._path.stat()
        except OSError as error:
            raise KeyFileError(f"the trusted keys {self._path} can't be read: {error.strerror}") from error
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> TrustedKeys:
        try:
            return TrustedKeys.from_text(self._path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise KeyFileError(f"the trusted keys {self._path} can't be read: {error}") from error


def write_trust_file(path: Path, text: str) -> None:
    """Put `text` in the file's place at once, so that nobody reads half of it; everybody may read it.

    Raises:
        KeyFileError: it can't be written, or holds no keys.

    """
    TrustedKeys.from_text(text)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                os.fchmod(descriptor, 0o644)
                file.write(text)
                file.flush()
                os.fsync(descriptor)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise KeyFileError(f"the trusted keys {path} can't be written: {error.strerror}") from error
