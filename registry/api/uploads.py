import json
from typing import Any, Final

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.answers import PartsAnswer, VersionAnswer
from registry.api.authentication import actor_of
from registry.api.bodies import read_input, read_upload
from registry.api.documents import parts_document, version_document
from registry.api.inputs import FilePathInput, PartsInput
from registry.api.parsers import Push, PushParser
from registry.api.rest.filters import read_filters
from registry.api.rest.views import ApiView
from registry.errors import InvalidInput
from registry.models import Version
from registry.permissions import Action
from registry.selectors import get_adapter, get_version
from registry.services.transfers.parts import complete_parts, list_parts, start_parts
from registry.services.transfers.pushes import push_version
from registry.services.uploads import finalize_upload

PUSH_FORM: Final = {
    "type": "object",
    "required": ["manifest"],
    "properties": {
        "manifest": {"type": "string", "description": "JSON: what starting an upload takes. It comes before the files."}
    },
    "additionalProperties": {"type": "string", "format": "binary"},
}


class PushView(ApiView):
    """One multipart request: the part ``manifest``, then one part per file, named by its path."""

    actions = {"post": Action.UPLOAD_VERSION}
    in_steps = True
    parser_classes = (PushParser,)

    @extend_schema(
        operation_id="push_version", request={"multipart/form-data": PUSH_FORM}, responses={202: VersionAnswer}
    )
    def post(self, request: Request, tenant: str, adapter: str) -> Response:
        actor = actor_of(request)
        line = get_adapter(actor=actor, tenant=tenant, name=adapter, action=Action.UPLOAD_VERSION)
        push = _push(request)
        version = push_version(actor=actor, adapter=line, parts=push.files(), **read_upload(push.manifest))
        return Response(version_document(version), status=202)

    def idempotent_content(self, request: Request) -> bytes:
        """The manifest stands for the files: it has their digests."""
        return json.dumps(_push(request).manifest, sort_keys=True).encode()


class PartsView(ApiView):
    """One large file in parts: which have arrived, and addresses for the others."""

    actions = {"get": Action.UPLOAD_VERSION, "post": Action.UPLOAD_VERSION}
    in_steps = True

    @extend_schema(operation_id="list_parts", parameters=[FilePathInput], responses={200: PartsAnswer})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        found = _uploaded(request, tenant, adapter, version)
        file = list_parts(actor=actor_of(request), version=found, **read_filters(request, FilePathInput))
        return Response(parts_document(file))

    @extend_schema(operation_id="start_parts", request=PartsInput, responses={200: PartsAnswer})
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        found = _uploaded(request, tenant, adapter, version)
        body = read_input(request, PartsInput)
        digests = {part["number"]: part["sha256"] for part in body["parts"]}
        file = start_parts(actor=actor_of(request), version=found, path=body["path"], digests=digests)
        return Response(parts_document(file))


class CompletePartsView(ApiView):
    actions = {"post": Action.UPLOAD_VERSION}
    in_steps = True

    @extend_schema(operation_id="complete_parts", request=FilePathInput, responses={200: PartsAnswer})
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        found = _uploaded(request, tenant, adapter, version)
        file = complete_parts(actor=actor_of(request), version=found, **read_input(request, FilePathInput))
        return Response(parts_document(file))


class FinalizeView(ApiView):
    actions = {"post": Action.UPLOAD_VERSION}
    in_steps = True

    @extend_schema(operation_id="finalize_upload", request=None, responses={202: VersionAnswer})
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        found = _uploaded(request, tenant, adapter, version)
        return Response(version_document(finalize_upload(actor=actor_of(request), version=found)), status=202)


def _uploaded(request: Request, tenant: str, adapter: str, version: str) -> Version:
    actor = actor_of(request)
    return get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.UPLOAD_VERSION)


def _push(request: Request) -> Push:
    push: Any = request.data
    if not isinstance(push, Push):
        raise InvalidInput(_("Send the push as multipart/form-data with a Content-Length."))
    return push
