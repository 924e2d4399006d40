"""Reading: the files of a revision, and their bytes."""

from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from typing import BinaryIO, ClassVar, Final
from urllib.parse import quote

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect, StreamingHttpResponse
from django.utils.translation import gettext as _
from rest_framework.parsers import FormParser
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.bodies import check_input
from registry.api.hub.base import HubView
from registry.api.hub.documents import entry_documents, path_documents
from registry.api.hub.inputs import PathsInput
from registry.api.parsers import StrictJSONParser
from registry.errors import EntryNotFound
from registry.hub.names import is_commit_id
from registry.hub.ranges import ByteRange, RangeNotSatisfiable, parse_range
from registry.naming import object_key
from registry.permissions import Action
from registry.services.hub.repos import find_repo
from registry.services.hub.revisions import resolve_revision
from registry.services.hub.trees import Tree
from registry.services.stores import artifact_store
from registry.signing.manifest import SignedFile

_CHUNK: Final = 1024 * 1024
# A revoked version can be fetched with an address that was given out before for no longer than this.
_ADDRESS_TTL_S: Final = 300


class ReadView(HubView):
    """A view of one revision."""

    actions: ClassVar = {"get": Action.VIEW_TENANT}

    def tree(self, request: Request, tenant: str, repo: str, revision: str) -> Tree:
        actor = actor_of(request)
        found = find_repo(actor=actor, tenant=tenant, name=repo)
        tree = resolve_revision(actor=actor, repo=found, revision=revision)
        self.commit = tree.commit
        return tree


class TreeView(ReadView):
    def get(self, request: Request, tenant: str, repo: str, revision: str, path: str = "") -> Response:
        tree = self.tree(request, tenant, repo, revision)
        flags = {name: _is_on(request, name) for name in ("recursive", "expand")}
        entries = entry_documents(tree, path.strip("/"), **flags)
        if path and not entries:
            raise EntryNotFound(_("There is no folder %(path)s.") % {"path": path}, field="path")
        return Response(entries)


class PathsInfoView(ReadView):
    actions: ClassVar = {"post": Action.VIEW_TENANT}
    parser_classes = (FormParser, StrictJSONParser)

    def post(self, request: Request, tenant: str, repo: str, revision: str) -> Response:
        tree = self.tree(request, tenant, repo, revision)
        data = request.data
        if hasattr(data, "getlist"):
            data = {"paths": data.getlist("paths"), "expand": data.get("expand", False)}
        body = check_input(data, PathsInput)
        return Response(path_documents(tree, body["paths"], expand=body["expand"]))


class ResolveView(ReadView):
    """The bytes of a file: from the store itself where it can be reached, else through here."""

    actions: ClassVar = {"get": Action.VIEW_TENANT, "head": Action.VIEW_TENANT}

    def head(self, request: Request, tenant: str, repo: str, revision: str, path: str) -> HttpResponseBase:
        file = self._file(request, tenant, repo, revision, path)
        if _is_elsewhere():
            return self._told(_redirect(tenant, file), file)
        if not is_commit_id(revision):
            # Clients keep what they fetch next under this commit: by then the name may mean another one.
            there = f"/{tenant}/{repo}/resolve/{self.commit}/{quote(file.path)}"
            return self._told(HttpResponseRedirect(there, status=HTTPStatus.TEMPORARY_REDIRECT), file)
        return self._told(HttpResponse(headers={"Content-Length": str(file.size)}), file)

    def get(self, request: Request, tenant: str, repo: str, revision: str, path: str) -> HttpResponseBase:
        file = self._file(request, tenant, repo, revision, path)
        if _is_elsewhere():
            return self._told(_redirect(tenant, file), file)
        asked = request.headers
        # A part of one file and the rest of another are of no use.
        is_same = asked.get("If-Range", _etag(file)) == _etag(file)
        return self._told(_send(tenant, file, asked.get("Range", "") if is_same else ""), file)

    def _file(self, request: Request, tenant: str, repo: str, revision: str, path: str) -> SignedFile:
        file = self.tree(request, tenant, repo, revision).file(path)
        if file is None:
            raise EntryNotFound(_("This revision has no file %(path)s.") % {"path": path}, field="path")
        return file

    def _told(self, response: HttpResponseBase, file: SignedFile) -> HttpResponseBase:
        name = quote(file.path.rpartition("/")[2])
        for header, value in {
            "ETag": _etag(file),
            "X-Linked-ETag": _etag(file),
            "X-Linked-Size": str(file.size),
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        }.items():
            response.headers[header] = value
        return response


class _Bytes:
    """Some bytes of an object, opened before the answer begins; Django closes it when the answer is over."""

    def __init__(self, key: str, *, first: int, length: int) -> None:
        self._resources = ExitStack()
        self._stream: BinaryIO = self._resources.enter_context(artifact_store().open(key))
        self._stream.seek(first)
        self._left = length

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._stream.read(min(_CHUNK, self._left)):
            self._left -= len(chunk)
            yield chunk

    def close(self) -> None:
        self._resources.close()


def _send(tenant: str, file: SignedFile, header: str) -> HttpResponseBase:
    try:
        part = parse_range(header, size=file.size)
    except RangeNotSatisfiable:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{file.size}"})
    whole = part or ByteRange(first=0, last=file.size - 1, size=file.size)
    content = _Bytes(_key(tenant, file), first=whole.first, length=whole.length)
    headers = {"Content-Length": str(whole.length), **({"Content-Range": str(part)} if part else {})}
    return StreamingHttpResponse(content, status=206 if part else 200, headers=headers)


def _redirect(tenant: str, file: SignedFile) -> HttpResponseRedirect:
    return HttpResponseRedirect(artifact_store().presign_get(_key(tenant, file), expires_s=_ADDRESS_TTL_S))


def _etag(file: SignedFile) -> str:
    return f'"{file.sha256}"'


def _key(tenant: str, file: SignedFile) -> str:
    return object_key(tenant=tenant, sha256=file.sha256)


def _is_elsewhere() -> bool:
    """Whether the store has an address of its own; clients follow one on this host themselves, and lose the facts."""
    return bool(settings.STORE["kind"] == "s3")


def _is_on(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() in {"1", "true"}
