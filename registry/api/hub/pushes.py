"""Writing: what is pushed goes to a draft; a tag cuts a version of it."""

from typing import Any, BinaryIO, ClassVar, cast

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import read_input
from registry.api.hub.base import HubView, refuse_pull_request, repo_url
from registry.api.hub.inputs import BranchInput, PreuploadInput, TagInput
from registry.api.store import RawParser
from registry.errors import InvalidInput, PayloadTooLarge, WrongState
from registry.hub.names import MAIN, is_left_out
from registry.naming import MAX_FILES
from registry.permissions import Action
from registry.services.hub.commits import check_pushed_path, commit_push
from registry.services.hub.drafts import create_branch, delete_branch, require_branch
from registry.services.hub.repos import writable_repo
from registry.services.hub.versions import cut_version

_MAX_LENGTH_DIGITS = 15


class PreuploadView(HubView):
    """Every file comes within the commit: clients ask, and take any other answer for Xet's own storage."""

    actions: ClassVar = {"post": Action.UPLOAD_VERSION}

    def post(self, request: Request, tenant: str, repo: str, revision: str) -> Response:
        actor = actor_of(request)
        refuse_pull_request(request)
        # Refused here, a client learns why before it sends what the server would not read.
        require_branch(actor=actor, repo=writable_repo(actor=actor, tenant=tenant, name=repo), branch=revision)
        files = read_input(request, PreuploadInput)["files"]
        return Response({"files": [_upload_mode(file["path"], file["size"]) for file in files]})


class CommitView(HubView):
    actions: ClassVar = {"post": Action.UPLOAD_VERSION}
    parser_classes = (RawParser,)

    def post(self, request: Request, tenant: str, repo: str, revision: str) -> Response:
        actor = actor_of(request)
        refuse_pull_request(request)
        found = writable_repo(actor=actor, tenant=tenant, name=repo)
        body = cast("BinaryIO", request._request)  # noqa: SLF001  the unread body: DRF would parse it
        commit = commit_push(actor=actor, repo=found, branch=revision, source=body, length=_length(request))
        url = f"{repo_url(request, tenant, repo)}/commit/{commit}"
        return Response({"success": True, "commitOid": commit, "commitUrl": url, "hookOutput": ""})


class TagView(HubView):
    actions: ClassVar = {"post": Action.UPLOAD_VERSION, "delete": Action.UPLOAD_VERSION}

    def post(self, request: Request, tenant: str, repo: str, revision: str) -> Response:
        actor = actor_of(request)
        found = writable_repo(actor=actor, tenant=tenant, name=repo)
        name = read_input(request, TagInput)["tag"]
        version = cut_version(actor=actor, repo=found, name=name, revision=revision)
        return Response({"tag": version.name, "state": version.state})

    def delete(self, request: Request, tenant: str, repo: str, revision: str) -> Response:
        writable_repo(actor=actor_of(request), tenant=tenant, name=repo)
        raise WrongState(_("A version is never deleted. Yank or revoke it instead."), field="tag")


class BranchView(HubView):
    actions: ClassVar = {"post": Action.UPLOAD_VERSION, "delete": Action.UPLOAD_VERSION}

    def post(self, request: Request, tenant: str, repo: str, revision: str) -> Response:
        actor = actor_of(request)
        found = writable_repo(actor=actor, tenant=tenant, name=repo)
        start = read_input(request, BranchInput)["startingPoint"] or MAIN
        create_branch(actor=actor, repo=found, branch=revision, start=start)
        return Response({})

    def delete(self, request: Request, tenant: str, repo: str, revision: str) -> Response:
        actor = actor_of(request)
        delete_branch(actor=actor, repo=writable_repo(actor=actor, tenant=tenant, name=repo), branch=revision)
        return Response({})


def _upload_mode(path: str, size: int) -> dict[str, Any]:
    left_out = is_left_out(path)
    if not left_out:
        check_pushed_path(path)
        if size > settings.MAX_VERSION_BYTES:
            raise PayloadTooLarge(
                _("%(path)s is larger than the limit of %(limit)d bytes.")
                % {"path": path, "limit": settings.MAX_VERSION_BYTES}
            )
    return {"path": path, "uploadMode": "regular", "shouldIgnore": left_out, "oid": None}


def _length(request: Request) -> int:
    """The announced length: without one, a push that broke off could not be told from a whole one."""
    said = request.META.get("CONTENT_LENGTH") or ""
    if not (said.isascii() and said.isdigit() and len(said) <= _MAX_LENGTH_DIGITS):
        raise InvalidInput(_("Send the commit with its Content-Length."), field="Content-Length")
    # Base64 makes four bytes of three; the rest is for paths.
    if int(said) > settings.MAX_VERSION_BYTES * 4 // 3 + MAX_FILES * 4096:
        raise PayloadTooLarge(
            _("The files are larger than the limit of %(limit)d bytes together.")
            % {"limit": settings.MAX_VERSION_BYTES}
        )
    return int(said)
