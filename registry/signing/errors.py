"""Why a signature, a folder or a grant is not trusted.

SigningError
├── KeyFileError           a key file is missing, exists already, or holds no P-256 key
├── UnknownKey             signed by a key that is not among the trusted ones
│   ├── KeyNotValid        by a trusted key, outside the time in which it signs
│   └── KeyRevoked         by a key that is no longer trusted, whenever it signed
├── BadSignature           not a signature as Lorekeeper writes it, or not over this content
├── FileMismatch           the files are not the signed ones
│   ├── DigestMismatch     a file's bytes or size differ
│   ├── MissingFile        a signed file is not there
│   ├── ExtraFile          a file that nobody signed is there
│   └── UnsafeFile         a symbolic link, device or pipe, or a file that changes while it is read
├── NameMismatch           validly signed, but for another adapter, version or base
└── GrantError             the permission to load does not hold
    ├── GrantExpired
    ├── GrantNotYetValid
    ├── GrantForOtherNode
    └── GrantForOtherCommand  the command was changed since it was granted
"""

from typing import ClassVar

from registry.errors import LorekeeperError


class SigningError(LorekeeperError):
    code: ClassVar[str] = "signing_error"


class KeyFileError(SigningError):
    code = "key_file"


class UnknownKey(SigningError):
    code = "unknown_key"
    reason: ClassVar[str] = "which is not trusted here"

    def __init__(self, key_id: str) -> None:
        super().__init__(f"signed by the key {key_id!a}, {self.reason}", field="key_id")
        self.key_id = key_id


class KeyNotValid(UnknownKey):
    code = "key_not_valid"
    reason = "which is trusted for what was signed at another time only"


class KeyRevoked(UnknownKey):
    code = "key_revoked"
    reason = "which was revoked"


class BadSignature(SigningError):
    code = "bad_signature"


class FileMismatch(SigningError):
    """The files are not the signed ones; `path` is the first that differs, relative to the folder."""

    code = "file_mismatch"
    sentence: ClassVar[str] = "{path} is not the signed file"

    def __init__(self, path: str) -> None:
        super().__init__(self.sentence.format(path=ascii(path)), field=path)
        self.path = path


class DigestMismatch(FileMismatch):
    code = "digest_mismatch"
    sentence = "{path} differs from the file that was signed"


class MissingFile(FileMismatch):
    code = "missing_file"
    sentence = "{path} was signed but is not there"


class ExtraFile(FileMismatch):
    code = "extra_file"
    sentence = "{path} is there but was not signed"


class UnsafeFile(FileMismatch):
    code = "unsafe_file"
    sentence = "{path} is not a regular file, or changes while it is read"


class NameMismatch(SigningError):
    """Validly signed for something else; `field` is the claim that differs."""

    code = "name_mismatch"

    def __init__(self, field: str, *, expected: object, found: object) -> None:
        super().__init__(f"{field} is {found!a} where {expected!a} is expected", field=field)


class GrantError(SigningError):
    code = "bad_grant"


class GrantExpired(GrantError):
    code = "grant_expired"


class GrantNotYetValid(GrantError):
    code = "grant_not_yet_valid"


class GrantForOtherNode(GrantError):
    code = "grant_for_other_node"


class GrantForOtherCommand(GrantError):
    code = "grant_for_other_command"
