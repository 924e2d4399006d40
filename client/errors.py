"""Everything the SDK raises on purpose.

::

    LorekeeperError
    ├── ConfigurationError          no address, no token, an unreadable configuration file
    ├── FolderRefused               a local file or folder that can't be pushed or written (`path`)
    ├── ServerUnreachable           no connection after all tries
    ├── UnexpectedAnswer            the answer isn't what the API promises
    ├── TransferFailed              the object store refused or lost a file (`path`)
    │   └── DigestMismatch          the bytes that arrived aren't the ones that were declared
    ├── SignatureRefused            a folder doesn't match its signature, or the signature isn't from a trusted key
    ├── WaitTimedOut                the state asked for wasn't reached in time
    └── ApiError                    problem+json from the server (`status`, `code`, `detail`, `field`)
        ├── InvalidRequest          400, 422
        ├── NotAuthenticated        401
        ├── PermissionDenied        403
        ├── NotFound                404
        ├── Conflict                409, 412
        │   ├── VersionExists       code version_exists
        │   └── UploadIncomplete    code upload_incomplete
        ├── TooLarge                413
        ├── TooManyRequests         429
        └── ServerFailed            5xx

Each carries `code` (for programs), `hint` (what to do, may be empty) and `str(error)` (one sentence for people).
"""

from __future__ import annotations

from typing import ClassVar

from client.i18n import _


class LorekeeperError(Exception):
    """Base of all errors of the SDK."""

    code: str = "error"

    @property
    def hint(self) -> str:
        """Say what to do about it; empty when the sentence says it already."""
        return ""

    def to_json(self) -> dict[str, object]:
        """Return a JSON object with `code`, `detail` and, where known, `hint`, `field`, `path`, `status`."""
        shown: dict[str, object] = {"code": self.code, "detail": str(self)}
        if self.hint:
            shown["hint"] = self.hint
        return shown


class ConfigurationError(LorekeeperError):
    """The client doesn't know where to connect, or as whom."""

    code = "configuration"


class ServerUnreachable(LorekeeperError):
    """No connection to the server (or the store) after all tries."""

    code = "server_unreachable"

    def __init__(self, url: str, reason: str) -> None:
        """Take the address without its query (a presigned query is a secret) and the reason in words."""
        super().__init__(_("{url} can't be reached: {reason}.").format(url=url, reason=reason))
        self.url = url

    @property
    def hint(self) -> str:
        """Point at the address."""
        return _("Check the address and that the service is running, then run the same command again.")


class UnexpectedAnswer(LorekeeperError):
    """The answer isn't what the API promises: another service, a proxy, or an incompatible release."""

    code = "unexpected_answer"


class _AboutPath(LorekeeperError):
    """An error about one file or folder."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "path": self.path}


class FolderRefused(_AboutPath):
    """A local file or folder that can't be pushed, or a target that can't be written."""

    code = "folder_refused"


class TransferFailed(_AboutPath):
    """The object store refused a file, or the transfer broke after all tries."""

    code = "transfer_failed"


class DigestMismatch(TransferFailed):
    """The bytes that arrived aren't the ones that were declared."""

    code = "digest_mismatch"

    def __init__(self, path: str, *, expected: str, actual: str) -> None:
        """Take both digests as hex SHA-256."""
        message = _("{path} has digest {actual}, but {expected} was declared.")
        super().__init__(path, message.format(path=path, actual=actual, expected=expected))
        self.expected = expected
        self.actual = actual


class SignatureRefused(LorekeeperError):
    """A folder doesn't match its signature, or the signature isn't from a trusted key."""

    code = "signature_refused"


class WaitTimedOut(LorekeeperError):
    """The state asked for wasn't reached in time; the server goes on working on it."""

    code = "wait_timed_out"


class ApiError(LorekeeperError):
    """The server refused: its problem+json as an exception."""

    advice: ClassVar[str] = ""

    def __init__(self, *, status: int, code: str, detail: str, field: str | None = None) -> None:
        """Take the HTTP status, the stable code, the sentence for people and the field (or file) at fault."""
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field

    def __str__(self) -> str:
        """Return the detail, with the field in front unless the detail names it."""
        if self.field and self.field not in self.detail:
            return f"{self.field}: {self.detail}"
        return self.detail

    @property
    def hint(self) -> str:
        """Return the advice of the class in the reader's language."""
        return _(self.advice) if self.advice else ""

    def to_json(self) -> dict[str, object]:
        """Add `status` and, where the server named one, `field`."""
        shown = {**super().to_json(), "detail": self.detail, "status": self.status}
        if self.field:
            shown["field"] = self.field
        return shown


class InvalidRequest(ApiError):
    """A value isn't acceptable (400, 422)."""


class NotAuthenticated(ApiError):
    """The token is missing, unknown, expired or revoked (401)."""

    advice = "Run `lorekeeper login` with a valid token, or set LOREKEEPER_TOKEN."


class PermissionDenied(ApiError):
    """The token's scopes or the person's roles don't allow this (403)."""

    advice = "See your roles and scopes with `lorekeeper whoami`."


class NotFound(ApiError):
    """No such object, or not one that this token may see (404)."""

    advice = "Check the spelling; objects of other tenants aren't visible."

    @property
    def hint(self) -> str:
        """Give the advice where a name was wrong, not where something just isn't made yet."""
        return super().hint if self.field else ""


class Conflict(ApiError):
    """The object's state doesn't allow this, or somebody else was faster (409, 412)."""


class VersionExists(Conflict):
    """The name is taken by a version with other files: versions never change."""

    advice = "Without --version the server gives the next free name."


class UploadIncomplete(Conflict):
    """A declared file isn't in the store yet."""

    advice = "Run the same push again: it continues where it stopped."


class TooLarge(ApiError):
    """The request or a file is over a limit (413)."""


class TooManyRequests(ApiError):
    """A rate or quota limit was met (429)."""

    advice = "Wait a little, then run the same command again."


class ServerFailed(ApiError):
    """The server failed (5xx)."""

    advice = "Run the same command again later; the request id is in the server's log."


_BY_CODE: dict[str, type[ApiError]] = {"version_exists": VersionExists, "upload_incomplete": UploadIncomplete}
_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequest,
    401: NotAuthenticated,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    413: TooLarge,
    422: InvalidRequest,
    429: TooManyRequests,
}
_SERVER_ERRORS_FROM = 500


def api_error(*, status: int, code: str, detail: str, field: str | None = None) -> ApiError:
    """Return the most exact `ApiError` for a code and status."""
    by_status = ServerFailed if status >= _SERVER_ERRORS_FROM else _BY_STATUS.get(status, ApiError)
    kind = _BY_CODE.get(code, by_status)
    return kind(status=status, code=code, detail=detail, field=field)
