"""Versions: creation, life, review and what belongs to them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from client.decoding import decode, decode_list
from client.errors import UnexpectedAnswer, WaitTimedOut
from client.i18n import _
from client.models import (
    Comment,
    Holder,
    Review,
    Signature,
    Upload,
    ValidationReport,
    Version,
    VersionFile,
    VersionUpload,
)
from client.pages import read_all
from client.parts import FileInParts
from client.transport import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from client.refs import PairRef, VersionRef
    from client.transport import Transport

_FIRST_POLL_S = 0.25
_LONGEST_POLL_S = 3.0


def _versions(ref: PairRef) -> str:
    return path_of("tenants", ref.tenant, "adapters", ref.name, "versions")


def _version(ref: VersionRef, *segments: str) -> str:
    return path_of("tenants", ref.tenant, "adapters", ref.adapter, "versions", ref.version, *segments)


def _named(digest: str, report: str | None, **more: str) -> dict[str, object]:
    """The body that names what is approved; a report that wasn't looked at, and empty texts, are left out."""
    looked_at = {"validation_digest": report} if report else {}
    return {"digest": digest, **looked_at, **{key: text for key, text in more.items() if text}}


class Versions:
    """Calls below `/tenants/{tenant}/adapters/{adapter}/versions`."""

    def __init__(self, transport: Transport) -> None:
        """Use the given connection."""
        self._transport = transport

    def create(
        self,
        adapter: PairRef,
        *,
        base_revision: str,
        files: Iterable[VersionFile],
        name: str | None = None,
        lineage: dict[str, object] | None = None,
    ) -> VersionUpload:
        """Create a version, or resume the identical one that is still uploading.

        Raises:
            VersionExists: the name is taken by a version with other files.

        """
        listed = [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in files]
        body: dict[str, object] = {"base_revision": base_revision, "files": listed}
        if name:
            body["name"] = name
        if lineage:
            body["lineage"] = lineage
        answer = self._transport.call("POST", _versions(adapter), body=body)
        uploads = answer.get("uploads") if isinstance(answer, dict) else None
        return VersionUpload(version=decode(Version, answer), uploads=decode_list(Upload, uploads))

    def all(self, adapter: PairRef, *, filters: Mapping[str, str | int] | None = None) -> tuple[Version, ...]:
        """Return the adapter's versions; `filters` are the parameters of the API, such as `git_commit` or `metric`."""
        return read_all(Version, self._transport, _versions(adapter), filters=filters)

    def search(self, tenant: str, *, filters: Mapping[str, str | int] | None = None) -> tuple[Version, ...]:
        """Return the versions of all adapters of a tenant that `filters` let through."""
        return read_all(Version, self._transport, path_of("tenants", tenant, "versions"), filters=filters)

    def get(self, ref: VersionRef) -> Version:
        """Return one version."""
        return decode(Version, self._transport.call("GET", _version(ref)))

    def start_parts(self, ref: VersionRef, path: str, digests: Mapping[int, str]) -> FileInParts:
        """Begin or continue a large file in parts; `digests` (hex SHA-256 by number) asks for addresses."""
        parts = [{"number": number, "sha256": sha256} for number, sha256 in digests.items()]
        body = {"path": path, "parts": parts}
        return decode(FileInParts, self._transport.call("POST", _version(ref, "parts"), body=body))

    def complete_parts(self, ref: VersionRef, path: str) -> FileInParts:
        """Say that all parts of a file are there; the server has them put together, and reads the whole.

        Raises:
            UploadIncomplete: a part isn't stored.
            InvalidRequest: together they aren't the file that was declared.

        """
        answer = self._transport.call("POST", _version(ref, "parts", "complete"), body={"path": path})
        return decode(FileInParts, answer)

    def finalize(self, ref: VersionRef) -> Version:
        """Say that all files are stored; validation starts.

        Raises:
            UploadIncomplete: a file isn't stored; `field` is its path.

        """
        return decode(Version, self._transport.call("POST", _version(ref, "finalize")))

    def wait(
        self,
        ref: VersionRef,
        *,
        timeout_s: float = 600.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Version:
        """Poll until validation is over and return the version (a candidate, or rejected).

        Raises:
            WaitTimedOut: it is still validating after `timeout_s` seconds.

        """
        deadline = clock() + timeout_s
        pause = _FIRST_POLL_S
        while not (version := self.get(ref)).settled:
            if clock() + pause > deadline:
                message = _("{ref} is still {state} after {seconds:g} s; look again with `lorekeeper show {ref}`.")
                raise WaitTimedOut(message.format(ref=ref, state=version.state, seconds=timeout_s))
            sleep(pause)
            pause = min(pause * 1.5, _LONGEST_POLL_S)
        return version

    def report(self, ref: VersionRef) -> ValidationReport:
        """Return the validation report."""
        return decode(ValidationReport, self._transport.call("GET", _version(ref, "report")))

    def signature(self, ref: VersionRef) -> Signature:
        """Return the signature bundle and the attestation."""
        return decode(Signature, self._transport.call("GET", _version(ref, "signature")))

    def file_url(self, ref: VersionRef, path: str) -> str:
        """Return a short-lived URL to read one file from the store."""
        return self._transport.location(f"{_version(ref, 'files')}/{quote(path, safe='/')}")

    def approve(
        self, ref: VersionRef, *, digest: str, validation_digest: str | None = None, comment: str = ""
    ) -> Version:
        """Approve exactly the content with this root digest, as this report found it (never one's own upload).

        The version is approved and signed with the last approval that the tenant's policy asks for.
        """
        return self._act(ref, "approve", _named(digest, validation_digest, comment=comment))

    def break_glass(
        self, ref: VersionRef, *, digest: str, reason: str, validation_digest: str | None = None
    ) -> Version:
        """Approve alone as a platform admin, against the policy; it is loud in the audit logs."""
        return self._act(ref, "break-glass", _named(digest, validation_digest, reason=reason))

    def review(self, ref: VersionRef) -> Review:
        """Return where the review stands, with every approval and why it does not count, if it doesn't."""
        return decode(Review, self._transport.call("GET", _version(ref, "review")))

    def comment(self, ref: VersionRef, text: str) -> Comment:
        """Say something in the review of a version."""
        return decode(Comment, self._transport.call("POST", _version(ref, "comments"), body={"text": text}))

    def comments(self, ref: VersionRef) -> tuple[Comment, ...]:
        """Return what was said of a version, oldest first."""
        return read_all(Comment, self._transport, _version(ref, "comments"))

    def inbox(self) -> tuple[Version, ...]:
        """Return the candidates, of all tenants, that one can approve now."""
        return read_all(Version, self._transport, path_of("inbox"))

    def holders(self, ref: VersionRef) -> tuple[Holder, ...]:
        """Return the nodes that still have a version."""
        return read_all(Holder, self._transport, _version(ref, "holders"))

    def decline(self, ref: VersionRef, *, reason: str) -> Version:
        """Decline a candidate."""
        return self._act(ref, "decline", {"reason": reason})

    def yank(self, ref: VersionRef, *, reason: str) -> Version:
        """Take a version out of new releases; where it serves it goes on serving."""
        return self._act(ref, "yank", {"reason": reason})

    def revoke(self, ref: VersionRef, *, reason: str) -> Version:
        """Stop serving a version now, everywhere, for good."""
        return self._act(ref, "revoke", {"reason": reason})

    def _act(self, ref: VersionRef, verb: str, body: dict[str, object]) -> Version:
        version = decode(Version, self._transport.call("POST", _version(ref, verb), body=body))
        if (version.tenant, version.adapter, version.name) != (ref.tenant, ref.adapter, ref.version):
            raise UnexpectedAnswer(
                _("The server answered about {other} instead of {ref}.").format(other=version.ref, ref=ref)
            )
        return version
