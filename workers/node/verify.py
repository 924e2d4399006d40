"""Whether a command may be obeyed: its grant, its signatures, and the bytes on this node's own disk."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from registry.signing.errors import FileMismatch, GrantExpired, NameMismatch, SigningError
from registry.signing.grants import Grant, check_grant, match_release
from registry.signing.manifest import SignedFile
from registry.signing.verify import TrustedKeys, verify_files, verify_folder, verify_release
from workers.node.commands import WarmCommand
from workers.node.errors import GrantIsOverError, NotTrustedError


class DamagedError(NotTrustedError):
    """The signatures hold, but the files on disk are not the signed ones: they can be fetched again."""

    code = "damaged_files"


class Verifier:
    """Trusts only `keys`, which come from a file of the operator; `now` is the clock."""

    def __init__(
        self, keys: TrustedKeys, *, node: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._keys = keys
        self._node = node
        self._now = now

    def grant(self, command: WarmCommand) -> Grant:
        """Check the grant for this node, name and generation, and both signatures over the listed files.

        Raises:
            GrantIsOverError: it came too late. NotTrustedError: anything else.

        """
        try:
            grant = check_grant(command.grant, self._keys, node=self._node, now=self._now())
            _expect("engine_name", grant.engine_name, command.engine_name)
            _expect("generation", grant.generation, command.generation)
            listed = [SignedFile(file.path, file.size, file.sha256) for file in command.files]
            verify_files(command.bundle, self._keys, listed, now=self._now())
            match_release(grant, verify_release(command.attestation, self._keys, now=self._now()))
        except GrantExpired as error:
            raise GrantIsOverError(str(error)) from error
        except SigningError as error:
            raise NotTrustedError(f"{error.code}: {error}") from error
        return grant

    def folder(self, folder: Path, command: WarmCommand, grant: Grant) -> None:
        """Check every byte of the folder against both signatures, and the release against the grant.

        Raises:
            DamagedError: a file differs, is missing or too many. NotTrustedError: a signature doesn't hold.

        """
        try:
            claims = verify_folder(folder, command.bundle, command.attestation, self._keys, now=self._now())
            match_release(grant, claims)
        except FileMismatch as error:
            raise DamagedError(f"{error.code}: {error}") from error
        except SigningError as error:
            raise NotTrustedError(f"{error.code}: {error}") from error


def _expect(field: str, granted: object, commanded: object) -> None:
    if granted != commanded:
        raise NameMismatch(field, expected=granted, found=commanded)
