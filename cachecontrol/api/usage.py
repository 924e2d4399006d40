"""What tenants used, and what was asked for when."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Final

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from cachecontrol.api.answers import UsageAnswer
from cachecontrol.api.documents import usage_document
from cachecontrol.api.inputs import TraceFilters, UsageFilters
from cachecontrol.requests.period import period_of
from cachecontrol.requests.traces import COLUMNS, Line, trace_requests
from cachecontrol.requests.usage import UsageBy, usage_of
from registry.api.authentication import actor_of
from registry.api.rest.filters import read_filters
from registry.api.rest.views import ApiView
from registry.permissions import Action
from registry.selectors import get_tenant

_CSV: Final = "text/csv"
_LINES_AT_ONCE: Final = 1000


class UsageView(ApiView):
    actions = {"get": Action.VIEW_TENANT}

    @extend_schema(operation_id="get_usage", parameters=[UsageFilters], responses={200: UsageAnswer})
    def get(self, request: Request, tenant: str) -> Response:
        owner = get_tenant(actor=actor_of(request), name=tenant)
        asked = read_filters(request, UsageFilters)
        period = period_of(since=asked.get("since"), until=asked.get("until"))
        by = UsageBy(asked.get("by", UsageBy.ALIAS))
        return Response(usage_document(owner, period, by, usage_of(tenant=owner, period=period, by=by)))


class TraceView(ApiView):
    """Every request of a time as CSV, in the form that ``lorekeeper replay`` reads."""

    actions = {"get": Action.VIEW_CACHE_POLICY}

    @extend_schema(
        operation_id="export_request_trace", parameters=[TraceFilters], responses={(200, _CSV): OpenApiTypes.STR}
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        asked = read_filters(request, TraceFilters)
        period = period_of(since=asked.get("since"), until=asked.get("until"))
        lines = trace_requests(actor=actor_of(request), period=period, base_model=asked.get("base_model"))
        response = StreamingHttpResponse(_csv(lines), content_type=_CSV)
        response["Content-Disposition"] = 'attachment; filename="trace.csv"'
        return response


def _csv(lines: Iterable[Line]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, line in enumerate(lines, start=1):
        writer.writerow(line)
        if number % _LINES_AT_ONCE == 0:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()
