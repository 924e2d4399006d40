"""From a gateway's lines to spans, and from there to an OTLP/HTTP receiver. The one place that loads OpenTelemetry."""

import os
import select
import socket
import time
from collections.abc import Iterator
from typing import Final

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags, TraceState
from opentelemetry.trace.status import Status, StatusCode

from gateway.spans.lines import Request, unpack

_BATCH: Final = 512
_GATHERED_S: Final = 1.0
_READ: Final = 256 * 1024
_SERVER_ERROR: Final = 500
_SCOPE: Final = InstrumentationScope("lorekeeper.gateway")
# What OpenTelemetry's conventions call an operation; the name of the path where they have none.
_OPERATIONS: Final = {"chat": "chat", "completions": "text_completion", "embeddings": "embeddings"}
_NOTED: Final = ("tenant", "alias", "tier", "node", "side", "fallback", "retries", "request_id", "stream")
_TIMES: Final = ("queue_ms", "load_ms", "ttft_ms")

Attributes = dict[str, str | bool | int | float]


def export_lines(source: int, exporter: SpanExporter, *, tell: int) -> None:
    """Send what comes from `source` (a file descriptor) until its end; tell `sent N` or `failed N` of each batch."""
    resource = resource_of_gateway()
    for lines in batches(source):
        spans = [span for line in lines for span in spans_of(unpack(line), resource)]
        is_sent = exporter.export(spans) is SpanExportResult.SUCCESS
        os.write(tell, b"%b %d\n" % (b"sent" if is_sent else b"failed", len(lines)))


def batches(source: int) -> Iterator[list[bytes]]:
    """Lines in groups: as many as there are a second after the first one, or enough before."""
    lines: list[bytes] = []
    rest, ends_at, is_open = b"", 0.0, True
    while is_open:
        if select.select([source], [], [], max(0.0, ends_at - time.monotonic()) if lines else None)[0]:
            data = os.read(source, _READ)
            is_open = bool(data)
            *whole, rest = (rest + data).split(b"\n")
            if whole and not lines:
                ends_at = time.monotonic() + _GATHERED_S
            lines += whole
        while len(lines) >= _BATCH:
            yield lines[:_BATCH]
            lines = lines[_BATCH:]
        if lines and (not is_open or time.monotonic() >= ends_at):
            yield lines
            lines = []


def resource_of_gateway() -> Resource:
    """What sends; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` have the last word."""
    instance = f"{socket.gethostname()}-{os.getppid()}"
    own = Resource.create({"service.name": "lorekeeper-gateway", "service.instance.id": instance})
    return own.merge(OTELResourceDetector().detect())


def spans_of(request: Request, resource: Resource) -> list[ReadableSpan]:
    """The request's own span, and that of the call to an engine if there was one."""
    context, record = request.context, request.record
    attributes = _attributes(request)
    is_fault = record.status >= _SERVER_ERROR or (bool(record.error_kind) and record.status // 100 == 2)  # noqa: PLR2004
    status = Status(StatusCode.ERROR, record.error_kind or None) if is_fault else Status(StatusCode.UNSET)
    own = ReadableSpan(
        name=f"POST {request.route}",
        context=_context(request, context.span_id),
        parent=_context(request, context.parent_id, is_remote=True) if context.parent_id else None,
        resource=resource,
        attributes=attributes
        | {
            "http.request.method": "POST",
            "http.route": request.route,
            "http.response.status_code": record.status,
            **{f"lorekeeper.{name}": getattr(record, name) for name in _TIMES},
        },
        kind=SpanKind.SERVER,
        status=status,
        start_time=request.began,
        end_time=request.began + request.ended,
        instrumentation_scope=_SCOPE,
    )
    if not request.sent:
        return [own]
    call = ReadableSpan(
        name=f"{attributes['gen_ai.operation.name']} {record.alias}",
        context=_context(request, context.call_id),
        parent=own.context,
        resource=resource,
        attributes=attributes,
        kind=SpanKind.CLIENT,
        status=status,
        start_time=request.began + request.sent,
        end_time=request.began + request.answered,
        instrumentation_scope=_SCOPE,
    )
    return [own, call]


def _context(request: Request, span_id: str, *, is_remote: bool = False) -> SpanContext:
    context = request.context
    return SpanContext(
        int(context.trace_id, 16),
        int(span_id, 16),
        is_remote=is_remote,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
        trace_state=TraceState.from_header([context.state]),
    )


def _attributes(request: Request) -> Attributes:
    """What both spans say; what is empty or unknown is left out."""
    record = request.record
    found: dict[str, str | bool | int | float | None] = {
        "gen_ai.operation.name": _OPERATIONS.get(record.path, record.path),
        "gen_ai.request.model": record.alias,
        "gen_ai.usage.input_tokens": record.prompt_tokens,
        "gen_ai.usage.output_tokens": record.completion_tokens,
        "error.type": record.error_kind,
        "lorekeeper.version_id": None if record.version_id is None else str(record.version_id),
        "lorekeeper.adapter": request.adapter,
        **{f"lorekeeper.{name}": getattr(record, name) for name in _NOTED},
    }
    return {name: value for name, value in found.items() if value is not None and value != ""}
