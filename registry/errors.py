"""Errors of the registry.

LorekeeperError
├── RegistryError
│   ├── InvalidInput
│   ├── NotFound
│   ├── PermissionDenied
│   ├── NotAuthenticated
│   ├── Conflict
│   │   ├── NameTaken
│   │   ├── VersionExists
│   │   ├── UploadIncomplete
│   │   ├── SelfApproval
│   │   ├── DigestChanged
│   │   └── WrongState
│   ├── IllegalTransition
│   ├── StaleState
│   ├── PayloadTooLarge
│   └── SignerUnavailable
└── (one tree more in each app above)
"""

from typing import ClassVar


class LorekeeperError(Exception):
    """Anything Lorekeeper refuses or fails at; ``code`` is stable, ``retryable`` says whether trying again can help.

    Args:
        message: one sentence for people, already translated.
        field: the input the message speaks of (a JSON field or a file's path), if any.

    """

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = str(message)
        self.field = field


class RegistryError(LorekeeperError):
    pass


class InvalidInput(RegistryError):
    code = "invalid_input"


class NotFound(RegistryError):
    code = "not_found"


class PermissionDenied(RegistryError):
    code = "permission_denied"


class NotAuthenticated(RegistryError):
    code = "not_authenticated"


class PayloadTooLarge(RegistryError):
    code = "payload_too_large"


class SignerUnavailable(RegistryError):
    """The key that signs can't be used; what needs a signature has to wait for an operator."""

    code = "signer_unavailable"
    retryable = True


class Conflict(RegistryError):
    code = "conflict"


class NameTaken(Conflict):
    code = "name_taken"


class VersionExists(Conflict):
    code = "version_exists"


class UploadIncomplete(Conflict):
    code = "upload_incomplete"


class SelfApproval(Conflict):
    code = "self_approval"


class DigestChanged(Conflict):
    code = "digest_changed"


class WrongState(Conflict):
    code = "wrong_state"


class IllegalTransition(RegistryError):
    code = "illegal_transition"


class StaleState(RegistryError):
    """Somebody else moved the object first: look again and retry."""

    code = "stale_state"
    retryable = True
