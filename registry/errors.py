"""Errors of the registry.

LorekeeperError
├── RegistryError
│   ├── InvalidInput
│   ├── NotFound
│   │   ├── RepoNotFound
│   │   ├── RevisionNotFound
│   │   └── EntryNotFound
│   ├── PermissionDenied
│   ├── NotAMember (a NotFound)
│   ├── AuditBroken
│   ├── NotAuthenticated
│   │   └── TokenRefused
│   ├── Conflict
│   │   ├── NameTaken
│   │   ├── VersionExists
│   │   ├── UploadIncomplete
│   │   ├── SelfApproval
│   │   ├── DigestChanged
│   │   ├── PlanChanged
│   │   ├── PolicyNotTried
│   │   ├── PipelineSignatureMissing
│   │   ├── WrongState
│   │   └── RequestRunning
│   ├── PreconditionFailed
│   ├── KeyReused
│   ├── IllegalTransition
│   ├── StaleState
│   ├── PayloadTooLarge
│   └── SignerUnavailable
└── (one tree more in each app above)
"""

from typing import ClassVar


class LorekeeperError(Exception):
    """Anything Lorekeeper refuses or fails at; ``code`` is stable, ``retryable`` says whether trying again can help.

    ``is_denial`` says that the caller asked for what he may not: the audit log tells of it.

    Args:
        message: one sentence for people, already translated.
        field: the input the message speaks of (a JSON field or a file's path), if any.

    """

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    is_denial: ClassVar[bool] = False

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


class RepoNotFound(NotFound):
    """No repository of the hub-compatible API that the caller may see."""

    code = "repo_not_found"


class RevisionNotFound(NotFound):
    """The repository is there; this version, branch or commit is not, or it was revoked."""

    code = "revision_not_found"


class EntryNotFound(NotFound):
    """The revision is there; this file is not in it."""

    code = "entry_not_found"


class NotAMember(NotFound):
    """Answered like any ``NotFound``: whether there is such a tenant is told to its members alone."""

    is_denial = True


class PermissionDenied(RegistryError):
    """What the caller asked for takes a role or a scope that the caller lacks.

    Args:
        tenant_id: primary key of the tenant in which it was asked for, if it was in one.

    """

    code = "permission_denied"
    is_denial = True

    def __init__(self, message: str, *, field: str | None = None, tenant_id: int | None = None) -> None:
        super().__init__(message, field=field)
        self.tenant_id = tenant_id


class NotAuthenticated(RegistryError):
    code = "not_authenticated"


class TokenRefused(NotAuthenticated):
    """A token that is not known, expired, or counts no more.

    Args:
        prefix: the token's public part, if it has the form of a token.
        chain: the audit chain of the token's owner, if it really was a token of theirs.

    """

    is_denial = True

    def __init__(self, message: str, *, prefix: str = "", chain: str = "") -> None:
        super().__init__(message)
        self.prefix = prefix
        self.chain = chain


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
    is_denial = True


class DigestChanged(Conflict):
    code = "digest_changed"


class PlanChanged(Conflict):
    """What would be removed is not what the caller looked at: look again."""

    code = "plan_changed"


class PolicyNotTried(Conflict):
    """Something that destroys by itself has to be tried by hand first."""

    code = "policy_not_tried"


class WrongState(Conflict):
    code = "wrong_state"


class PipelineSignatureMissing(Conflict):
    """The tenant asks for the pipeline's own signature, and no registered key that is still trusted made one."""

    code = "pipeline_signature_missing"


class RequestRunning(Conflict):
    """The same request came before and has not been answered yet."""

    code = "request_running"
    retryable = True


class KeyReused(RegistryError):
    """An idempotency key that stands for another request."""

    code = "idempotency_key_reused"


class PreconditionFailed(RegistryError):
    """What the caller named as unchanged has changed."""

    code = "precondition_failed"


class AuditBroken(RegistryError):
    """An audit chain is not what was signed of it, or does not hang together: somebody changed it in the database."""

    code = "audit_broken"


class IllegalTransition(RegistryError):
    code = "illegal_transition"


class StaleState(RegistryError):
    """Somebody else moved the object first: look again and retry."""

    code = "stale_state"
    retryable = True
