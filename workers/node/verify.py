"""Whether a command may be obeyed: its grant, its signatures, and the bytes on this node's own disk."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from registry.naming import ATTESTATION_FILE
from registry.signing.bundle import ReleaseClaims
from registry.signing.errors import FileMismatch, GrantExpired, GrantNotYetValid, NameMismatch, SigningError
from registry.signing.grants import EVICT, FETCH, LOAD, Grant, check_grant, match_command, match_release
from registry.signing.manifest import SignedFile
from registry.signing.verify import KeyRing, verify_files, verify_folder, verify_release
from workers.node.commands import EvictCommand, FetchCommand, WarmCommand
from workers.node.durable import LOST
from workers.node.errors import GrantNotNowError, NotTrustedError


class DamagedError(NotTrustedError):
    """The signatures hold, but the files on disk are not the signed ones: the disk's fault, so they can be replaced."""

    code = "damaged_files"
    error_class = "transient"
    retryable = True


class Verifier:
    """Trusts only `keys`, which come from a file of the operator; `now` is the clock."""

    def __init__(self, keys: KeyRing, *, node: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._keys = keys
        self._node = node
        self._now = now

    def grant(self, command: FetchCommand) -> Grant:
        """Check the grant for this node, act and very command, and both signatures over the listed files.

        Raises:
            GrantNotNowError: it came too late or too early. NotTrustedError: anything else.

        """
        with _named():
            grant = self._granted(command, LOAD if isinstance(command, WarmCommand) else FETCH)
            listed = [SignedFile(file.path, file.size, file.sha256) for file in command.files]
            verify_files(command.bundle, self._keys, listed, now=self._now())
            match_release(grant, verify_release(command.attestation, self._keys, now=self._now()))
        return grant

    def eviction(self, command: EvictCommand) -> Grant:
        """Check the grant to evict; raises as `grant` does.

        Whoever can write to the queue could else unload any version, and void all later commands by a high generation.
        """
        with _named():
            return self._granted(command, EVICT)

    def release(self, folder: Path) -> ReleaseClaims:
        """Say what a version's folder is, by its attestation alone. Raises `NotTrustedError` or `OSError`."""
        text = (folder / ATTESTATION_FILE).read_text()
        with _named():
            return verify_release(text, self._keys, now=self._now())

    def require_current(self, grant: Grant) -> None:
        """Raise `GrantNotNowError` once the grant is over: a download or a queue may have outlasted it."""
        if self._now() >= grant.expires_at:
            raise GrantNotNowError("the grant expired while the command was being carried out")

    def folder(self, folder: Path, command: FetchCommand, grant: Grant) -> None:
        """Check every byte of the folder against both signatures, and the release against the grant.

        Raises:
            DamagedError: a file differs, is missing or too many. NotTrustedError: a signature doesn't hold.

        """
        with _named():
            try:
                claims = verify_folder(folder, command.bundle, command.attestation, self._keys, now=self._now())
            except FileMismatch as error:
                raise DamagedError(f"{error.code}: {error}") from error
            except OSError as error:
                if error.errno not in LOST:
                    raise
                raise DamagedError(f"the disk can't read them: {error}") from error
            match_release(grant, claims)

    def _granted(self, command: FetchCommand | EvictCommand, action: str) -> Grant:
        grant = check_grant(command.grant, self._keys, node=self._node, now=self._now())
        match_command(grant, command.digest)
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
