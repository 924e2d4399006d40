import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.authentication import actor_of
from registry.api.documents import Document
from registry.api.rest.filters import read_filters
from registry.api.rest.pagination import page
from registry.api.rest.schema import listed
from registry.api.rest.views import ApiView
from registry.audit import PLATFORM_CHAIN
from registry.errors import NotFound
from registry.models import AuditCheckpoint, AuditRecord
from registry.permissions import Action
from registry.selectors import get_checkpoint, list_audit, list_checkpoints
from registry.services.audit.checkpoints import read_checkpoint
from registry.services.audit.exports import audit_document, export_audit

_LINES = "application/x-ndjson"
_BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_LARGEST_SEQ = 2**63 - 1
_SEQ = re.compile(r"[0-9]{1,18}", re.ASCII)


class AuditFilters(serializers.Serializer[Any]):
    after_seq = serializers.IntegerField(required=False, min_value=0, max_value=_LARGEST_SEQ, source="seq__gt")
    action = serializers.CharField(required=False, source="action__startswith", help_text="A tag, or its beginning.")
    actor = serializers.CharField(required=False, source="actor__id", help_text="A person's e-mail, a token's prefix.")
    object = serializers.CharField(required=False, source="object__id")
    object_name = serializers.CharField(required=False, source="object__name")
    request_id = serializers.CharField(required=False)
    since = serializers.DateTimeField(required=False, source="at__gte")
    until = serializers.DateTimeField(required=False, source="at__lt")


class AuditRecordAnswer(serializers.Serializer[Any]):
    chain = serializers.CharField()
    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.DictField()
    action = serializers.CharField()
    object = serializers.DictField()
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)
    reason = serializers.CharField()
    request_id = serializers.CharField()
    source = serializers.CharField(help_text="From where: an address, or a worker's name.")  # type: ignore[assignment]
    how = serializers.CharField(help_text="By which way: api, hub, web, task or command.")
    payload = serializers.CharField(help_text="The canonical text that `hash` covers.")
    prev_hash = serializers.CharField()
    hash = serializers.CharField()


class CheckpointAnswer(serializers.Serializer[Any]):
    chain = serializers.CharField()
    seq = serializers.IntegerField(help_text="The number of the record that it speaks of.")
    head = serializers.CharField(help_text="The hash of that record.")
    object_key = serializers.CharField(help_text="Where it lies in the artifact store.")
    sha256 = serializers.CharField()
    key_id = serializers.CharField(help_text="The key that signed it.")
    locked_until = serializers.DateTimeField(allow_null=True, help_text="Null: the store has no object lock.")
    created_at = serializers.DateTimeField()


class AuditView(ApiView):
    actions = {"get": Action.READ_AUDIT}

    @extend_schema(operation_id="list_audit", parameters=[AuditFilters], responses={200: listed(AuditRecordAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        records = list_audit(actor=actor_of(request), tenant=tenant)
        wanted = records.filter(**read_filters(request, AuditFilters))
        return page(request, wanted, ordering=("seq",), document=audit_document)


class PlatformAuditView(ApiView):
    actions = {"get": Action.READ_PLATFORM_AUDIT}

    @extend_schema(
        operation_id="list_platform_audit", parameters=[AuditFilters], responses={200: listed(AuditRecordAnswer)}
    )
    def get(self, request: Request) -> Response:
        wanted = list_audit(actor=actor_of(request)).filter(**read_filters(request, AuditFilters))
        return page(request, wanted, ordering=("seq",), document=audit_document)


class AuditExportView(ApiView):
    actions = {"get": Action.READ_AUDIT}

    @extend_schema(operation_id="export_audit", responses={(200, _LINES): OpenApiTypes.STR})
    def get(self, request: Request, tenant: str) -> StreamingHttpResponse:
        return _export(export_audit(actor=actor_of(request), tenant=tenant), tenant)


class PlatformAuditExportView(ApiView):
    actions = {"get": Action.READ_PLATFORM_AUDIT}

    @extend_schema(operation_id="export_platform_audit", responses={(200, _LINES): OpenApiTypes.STR})
    def get(self, request: Request) -> StreamingHttpResponse:
        return _export(export_audit(actor=actor_of(request)), PLATFORM_CHAIN)


class CheckpointsView(ApiView):
    actions = {"get": Action.READ_AUDIT}

    @extend_schema(operation_id="list_checkpoints", responses={200: listed(CheckpointAnswer)})
    def get(self, request: Request, tenant: str) -> Response:
        found = list_checkpoints(actor=actor_of(request), tenant=tenant)
        return page(request, found, ordering=("seq", "pk"), document=checkpoint_document)


class PlatformCheckpointsView(ApiView):
    actions = {"get": Action.READ_PLATFORM_AUDIT}

    @extend_schema(operation_id="list_platform_checkpoints", responses={200: listed(CheckpointAnswer)})
    def get(self, request: Request) -> Response:
        found = list_checkpoints(actor=actor_of(request))
        return page(request, found, ordering=("seq", "pk"), document=checkpoint_document)


class CheckpointView(ApiView):
    """One checkpoint, byte for byte as the store has it."""

    actions = {"get": Action.READ_AUDIT}

    @extend_schema(operation_id="get_checkpoint", responses={(200, _BUNDLE): OpenApiTypes.OBJECT})
    def get(self, request: Request, tenant: str, seq: str) -> HttpResponse:
        found = get_checkpoint(actor=actor_of(request), tenant=tenant, seq=_number(seq))
        return HttpResponse(read_checkpoint(checkpoint=found), content_type=_BUNDLE)


class PlatformCheckpointView(ApiView):
    actions = {"get": Action.READ_PLATFORM_AUDIT}

    @extend_schema(operation_id="get_platform_checkpoint", responses={(200, _BUNDLE): OpenApiTypes.OBJECT})
    def get(self, request: Request, seq: str) -> HttpResponse:
        found = get_checkpoint(actor=actor_of(request), seq=_number(seq))
        return HttpResponse(read_checkpoint(checkpoint=found), content_type=_BUNDLE)


def checkpoint_document(checkpoint: AuditCheckpoint) -> Document:
    return {
        "chain": checkpoint.chain,
        "seq": checkpoint.seq,
        "head": checkpoint.head,
        "object_key": checkpoint.object_key,
        "sha256": checkpoint.sha256,
        "key_id": checkpoint.key_id,
        "locked_until": checkpoint.locked_until,
        "created_at": checkpoint.created_at,
    }


def _number(text: str) -> int:
    if _SEQ.fullmatch(text) is None:
        raise NotFound(_("There is no checkpoint at this record."), field="seq")
    return int(text)


def _export(records: Iterable[AuditRecord], chain: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(_lines(records), content_type=_LINES)
    response["Content-Disposition"] = f'attachment; filename="audit-{chain}.jsonl"'
    return response


def _lines(records: Iterable[AuditRecord]) -> Iterator[bytes]:
    for record in records:
        yield json.dumps(audit_document(record), ensure_ascii=False).encode() + b"\n"
