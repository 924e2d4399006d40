import json
from collections.abc import Iterator

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.api.authentication import actor_of
from registry.api.bodies import check_input
from registry.api.documents import audit_document
from registry.api.inputs import AfterSeqInput
from registry.models import AuditRecord
from registry.selectors import list_audit

_PAGE = 200


class AuditView(APIView):
    def get(self, request: Request, tenant: str) -> Response:
        after = check_input(request.query_params.dict(), AfterSeqInput)["after_seq"]
        records = list(list_audit(actor=actor_of(request), tenant=tenant, after_seq=after)[: _PAGE + 1])
        page = records[:_PAGE]
        more = page[-1].seq if len(records) > _PAGE else None
        return Response({"results": [audit_document(record) for record in page], "next": more})


class AuditExportView(APIView):
    def get(self, request: Request, tenant: str) -> StreamingHttpResponse:
        records = list_audit(actor=actor_of(request), tenant=tenant)
        response = StreamingHttpResponse(_lines(records), content_type="application/x-ndjson")
        response["Content-Disposition"] = f'attachment; filename="audit-{tenant}.jsonl"'
        return response


def _lines(records: QuerySet[AuditRecord]) -> Iterator[bytes]:
    for record in records.iterator(chunk_size=500):
        yield json.dumps(audit_document(record), ensure_ascii=False).encode() + b"\n"
