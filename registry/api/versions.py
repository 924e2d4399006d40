from django.conf import settings
from django.http import HttpResponseRedirect
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from registry.actors import Actor
from registry.api.answers import ReportAnswer, SignatureAnswer, UploadAnswer, VersionAnswer
from registry.api.authentication import actor_of
from registry.api.bodies import read_upload
from registry.api.documents import signature_document, upload_document, version_document
from registry.api.inputs import TenantVersionFilters, VersionFilters, VersionInput
from registry.api.rest.etags import answer
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page
from registry.api.rest.schema import REDIRECT, listed
from registry.api.rest.views import ApiView
from registry.errors import NotFound
from registry.models import Signature, Version
from registry.naming import object_key
from registry.permissions import Action
from registry.selectors import get_adapter, get_version, list_versions, narrow_versions
from registry.services.stores import artifact_store
from registry.services.uploads import start_upload


class VersionsView(ApiView):
    actions = {"get": Action.VIEW_TENANT, "post": Action.UPLOAD_VERSION}

    @extend_schema(operation_id="list_versions", parameters=[VersionFilters], responses={200: listed(VersionAnswer)})
    def get(self, request: Request, tenant: str, adapter: str) -> Response:
        versions = list_versions(actor=actor_of(request), tenant=tenant, adapter=adapter)
        found = narrow_versions(versions, **read_filters(request, VersionFilters))
        return page(request, found, document=version_document)

    @extend_schema(operation_id="start_upload", request=VersionInput, responses={200: UploadAnswer, 201: UploadAnswer})
    def post(self, request: Request, tenant: str, adapter: str) -> Response:
        actor = actor_of(request)
        line = get_adapter(actor=actor, tenant=tenant, name=adapter, action=Action.UPLOAD_VERSION)
        started = start_upload(actor=actor, adapter=line, **read_upload(request.data))
        return Response(upload_document(started), status=200 if started.resumed else 201)


class TenantVersionsView(ApiView):
    """The versions of all adapters, to search by where they come from."""

    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(
        operation_id="search_versions", parameters=[TenantVersionFilters], responses={200: listed(VersionAnswer)}
    )
    def get(self, request: Request, tenant: str) -> Response:
        versions = list_versions(actor=actor_of(request), tenant=tenant)
        found = narrow_versions(versions, **read_filters(request, TenantVersionFilters))
        return page(request, found, document=version_document)


class VersionView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="get_version", responses={200: VersionAnswer})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        return answer(version_document(_seen(actor_of(request), tenant, adapter, version)), request)


class ReportView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="get_report", responses={200: ReportAnswer})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        report = _seen(actor_of(request), tenant, adapter, version).reports.first()
        if report is None:
            raise NotFound(_("This version has not been validated yet."))
        return Response({**report.report, "digest": report.digest, "created_at": report.created_at})


class FileView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="download_file", responses={302: REDIRECT})
    def get(self, request: Request, tenant: str, adapter: str, version: str, path: str) -> HttpResponseRedirect:
        found = _seen(actor_of(request), tenant, adapter, version)
        file = found.files.select_related("artifact").filter(path=path).first()
        if file is None or file.artifact.stored_at is None:
            raise NotFound(_("This version has no stored file at this path."), field=path)
        key = object_key(tenant=tenant, sha256=file.artifact.sha256)
        return HttpResponseRedirect(artifact_store().presign_get(key, expires_s=settings.UPLOAD_URL_TTL_S))


class SignatureView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="get_signature", responses={200: SignatureAnswer})
    def get(self, request: Request, tenant: str, adapter: str, version: str) -> Response:
        found = _seen(actor_of(request), tenant, adapter, version)
        if not Signature.objects.filter(version=found).exists():
            raise NotFound(_("This version is not signed: it has not been approved."))
        return Response(signature_document(found))


def _seen(actor: Actor, tenant: str, adapter: str, version: str) -> Version:
    return get_version(actor=actor, tenant=tenant, adapter=adapter, name=version)
