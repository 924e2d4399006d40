from typing import Any

from django.conf import settings
from django.http import HttpResponseRedirect
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.actors import Actor
from registry.api.authentication import actor_of
from registry.api.bodies import check_input, read_input, read_manifest
from registry.api.documents import signature_document, upload_document, version_document
from registry.api.inputs import ApprovalInput, ReasonInput, VersionInput
from registry.api.parsers import PushParser
from registry.errors import InvalidInput, NotFound
from registry.models import Signature, Version
from registry.naming import object_key
from registry.permissions import Action
from registry.selectors import get_adapter, get_version, list_versions
from registry.services.approvals import approve_version, decline_version
from registry.services.pushes import push_version
from registry.services.stores import artifact_store
from registry.services.uploads import finalize_upload, start_upload
from registry.services.withdrawals import revoke_version, yank_version
from registry.signing.manifest import SignedFile


class VersionsView(APIView):
    def get(self, request: Request, tenant: str, adapter: str) -> Response:
        versions = list_versions(actor=actor_of(request), tenant=tenant, adapter=adapter)
        return Response({"results": [version_document(version) for version in versions]})

    def post(self, request: Request, tenant: str, adapter: str) -> Response:
        actor = actor_of(request)
        line = get_adapter(actor=actor, tenant=tenant, name=adapter, action=Action.UPLOAD_VERSION)
        started = start_upload(actor=actor, adapter=line, **_upload(read_input(request, VersionInput)))
        return Response(upload_document(started), status=200 if started.resumed else 201)


class PushView(APIView):
    """One multipart request: a part ``manifest`` and one part per file, named by its path."""

    parser_classes = (PushParser,)

    def post(self, request: Request, tenant: str, adapter: str) -> Response:
        actor = actor_of(request)
        line = get_adapter(actor=actor, tenant=tenant, name=adapter, action=Action.UPLOAD_VERSION)
        body = check_input(read_manifest(request), VersionInput)
        version = push_version(actor=actor, adapter=line, parts=_parts(request), **_upload(body))
        return Response(version_document(version), status=202)


class VersionView(APIView):
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        return Response(version_document(_seen(actor_of(request), tenant, adapter, version)))


class FinalizeView(APIView):
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.UPLOAD_VERSION)
        return Response(version_document(finalize_upload(actor=actor, version=found)), status=202)


class ReportView(APIView):
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        report = _seen(actor_of(request), tenant, adapter, version).reports.first()
        if report is None:
            raise NotFound(_("This version has not been validated yet."))
        return Response({**report.report, "digest": report.digest, "created_at": report.created_at})


class FileView(APIView):
    def get(self, request: Request, tenant: str, adapter: str, version: str, path: str) -> HttpResponseRedirect:
        found = _seen(actor_of(request), tenant, adapter, version)
        file = found.files.select_related("artifact").filter(path=path).first()
        if file is None or file.artifact.stored_at is None:
            raise NotFound(_("This version has no stored file at this path."), field=path)
        key = object_key(tenant=tenant, sha256=file.artifact.sha256)
        return HttpResponseRedirect(artifact_store().presign_get(key, expires_s=settings.UPLOAD_URL_TTL_S))


class SignatureView(APIView):
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        found = _seen(actor_of(request), tenant, adapter, version)
        if not Signature.objects.filter(version=found).exists():
            raise NotFound(_("This version is not signed: it has not been approved."))
        return Response(signature_document(found))


class ApproveView(APIView):
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.APPROVE_VERSION)
        approved = approve_version(actor=actor, version=found, **read_input(request, ApprovalInput))
        return Response(version_document(approved))


class DeclineView(APIView):
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.APPROVE_VERSION)
        declined = decline_version(actor=actor, version=found, **read_input(request, ReasonInput))
        return Response(version_document(declined))


class YankView(APIView):
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = _withdrawable(actor, tenant, adapter, version)
        yanked = yank_version(actor=actor, version=found, **read_input(request, ReasonInput))
        return Response(version_document(yanked))


class RevokeView(APIView):
    def post(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        actor = actor_of(request)
        found = _withdrawable(actor, tenant, adapter, version)
        revoked = revoke_version(actor=actor, version=found, **read_input(request, ReasonInput))
        return Response(version_document(revoked))


def _seen(actor: Actor, tenant: str, adapter: str, version: str) -> Version:
    return get_version(actor=actor, tenant=tenant, adapter=adapter, name=version)


def _withdrawable(actor: Actor, tenant: str, adapter: str, version: str) -> Version:
    return get_version(actor=actor, tenant=tenant, adapter=adapter, name=version, action=Action.WITHDRAW_VERSION)


def _upload(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": body["name"],
        "base_revision": body["base_revision"],
        "files": [SignedFile(path=file["path"], size=file["size"], sha256=file["sha256"]) for file in body["files"]],
        "lineage": body["lineage"],
    }


def _parts(request: Request) -> dict[str, Any]:
    for path, files in request.FILES.lists():
        if len(files) > 1:
            raise InvalidInput(_("%(path)s comes twice in the request.") % {"path": path}, field=path)
    return {path: upload.file for path, upload in request.FILES.items()}
