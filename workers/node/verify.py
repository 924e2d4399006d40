"""Whether a command may be obeyed: its grant, its signatures, and the bytes on this node's own disk."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from registry.signing.errors import FileMismatch, GrantExpired, GrantNotYetValid, NameMismatch, SigningError
from registry.signing.grants import EVICT, LOAD, Grant, check_grant, match_release
from registry.signing.manifest import SignedFile
from registry.signing.verify import KeyRing, verify_files, verify_folder, verify_release
from workers.node.commands import EvictCommand, WarmCommand
from workers.node.errors import GrantNotNowError, NotTrustedError


class DamagedError(NotTrustedError):
    """The signatures hold, but the files on disk are not the signed ones: they can be fetched again."""

    code = "damaged_files"


class Verifier:
    """Trusts only `keys`, which come from a file of the operator; `now` is the clock."""

    def __init__(self, keys: KeyRing, *, node: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._keys = keys
        self._node = node
        self._now = now

    def grant(self, command: WarmCommand) -> Grant:
        """Check the grant for this node, name and generation, and both signatures over the listed files.

        Raises:
            GrantNotNowError: it came too late or too early. NotTrustedError: anything else.

        """
        with _named():
            grant = self._granted(command, LOAD)
            listed = [SignedFile(file.path, file.size, file.sha256) for file in command.files]
            verify_files(command.bundle, self._keys, listed, now=self._now())
            match_release(grant, verify_release(command.attestation, self._keys, now=self._now()))
        return grant

    def eviction(self, command: EvictCommand) -> None:
        """Check the grant to evict; raises as `grant` does.

        Whoever can write to the queue could else unload any version, and void all later commands by a high generation.
        """
        with _named():
            self._granted(command, EVICT)

    def folder(self, folder: Path, command: WarmCommand, grant: Grant) -> None:
        """Check every byte of the folder against both signatures, and the release against the grant.

        Raises:
            DamagedError: a file differs, is missing or too many. NotTrustedError: a signature doesn't hold.

        """
        with _named():
            try:
                claims = verify_folder(folder, command.bundle, command.attestation, self._keys, now=self._now())
            except FileMismatch as error:
                raise DamagedError(f"{error.code}: {error}") from error
            match_release(grant, claims)

    def _granted(self, command: WarmCommand | EvictCommand, action: str) -> Grant:
        grant = check_grant(command.grant, self._keys, node=self._node, now=self._now())
        _expect("action", grant.action, action)
        _expect("engine_name", grant.engine_name, command.engine_name)
        _expect("generation", grant.generation, command.generation)
        return grant


@contextmanager
def _named() -> Iterator[None]:
    """Errors of signing as errors of the node."""
    try:
        yield
    except (GrantExpired, GrantNotYetValid) as error:
        raise GrantNotNowError(str(error)) from error
    except SigningError as error:
        raise NotTrustedError(f"{error.code}: {error}") from error


def _expect(field: str, granted: object, commanded: object) -> None:
    if granted != commanded:
        raise NameMismatch(field, expected=granted, found=commanded)
