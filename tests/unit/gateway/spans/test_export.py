"""From lines to spans, by OpenTelemetry's own classes."""

import os
import threading
from types import SimpleNamespace
from uuid import UUID

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import StatusCode

from gateway.spans.context import SpanContext
from gateway.spans.export import batches, export_lines, resource_of_gateway, spans_of
from gateway.spans.lines import pack, unpack
from gateway.trace import Trace
from gateway.upstream.answers import Usage

VERSION = UUID(int=7)
CONTEXT = SpanContext("a" * 32, "b" * 16, "c" * 16, "d" * 16, "vendor=1")
ROUTE = "/v1/chat/completions"


def line(*, status: int = 200, error_kind: str = "", is_sent: bool = True, context: SpanContext = CONTEXT) -> bytes:
    trace = Trace("req-1", tenant="acme", path="chat")
    trace.alias, trace.version_id, trace.node, trace.tier, trace.side = "support", VERSION, "n1", "gpu", "canary"
    trace.usage = Usage(12, 34)
    trace.arrived -= 1.0
    if is_sent:
        trace.sent_at = trace.arrived + 0.25
        trace.last_engine_s = trace.engine_s = 0.5
    return pack(context, trace, trace.record(status=status, error_kind=error_kind), route=ROUTE, adapter="acme/tone")


def spans(**facts: object) -> list[ReadableSpan]:
    return spans_of(unpack(line(**facts)), Resource.get_empty())  # type: ignore[arg-type]


def test_a_request_is_a_span_with_the_callers_as_its_parent_and_its_call_one_within_it() -> None:
    own, call = spans()
    assert (own.name, own.kind, call.name, call.kind) == (
        f"POST {ROUTE}",
        SpanKind.SERVER,
        "chat support",
        SpanKind.CLIENT,
    )
    assert own.context is not None
    assert own.parent is not None
    assert call.parent is not None
    assert call.context is not None
    assert (own.parent.span_id, call.parent.span_id) == (int("d" * 16, 16), own.context.span_id)
    assert {own.context.trace_id, call.context.trace_id} == {int("a" * 32, 16)}
    assert own.context.trace_state.to_header() == "vendor=1"
    assert call.context.span_id == int("c" * 16, 16)
    assert own.start_time is not None
    assert own.end_time is not None
    assert call.start_time is not None
    assert call.end_time is not None
    assert call.start_time - own.start_time == pytest.approx(0.25e9, abs=1e6)
    assert call.end_time - call.start_time == pytest.approx(0.5e9, abs=1e6)
    assert own.start_time < call.start_time < call.end_time <= own.end_time


def test_both_say_whose_it_is_and_what_answered_it() -> None:
    own, call = spans()
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "support",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 34,
        "lorekeeper.tenant": "acme",
        "lorekeeper.alias": "support",
        "lorekeeper.adapter": "acme/tone",
        "lorekeeper.version_id": str(VERSION),
        "lorekeeper.tier": "gpu",
        "lorekeeper.node": "n1",
        "lorekeeper.side": "canary",
        "lorekeeper.retries": 0,
        "lorekeeper.request_id": "req-1",
        "lorekeeper.stream": False,
    }
    assert dict(call.attributes or {}) == said
    about_the_request = {"http.request.method": "POST", "http.route": ROUTE, "http.response.status_code": 200}
    assert dict(own.attributes or {}).items() >= (said | about_the_request).items()


def test_a_request_that_no_engine_saw_is_one_span() -> None:
    (own,) = spans(status=404, error_kind="model_not_found", is_sent=False)
    assert own.status.status_code is StatusCode.UNSET, "it is the caller's mistake"
    assert (own.attributes or {})["error.type"] == "model_not_found"


@pytest.mark.parametrize(("status", "kind"), [(502, "engine_failed"), (200, "engine_broke_off")])
def test_what_failed_by_our_doing_is_an_error(status: int, kind: str) -> None:
    assert [span.status.status_code for span in spans(status=status, error_kind=kind)] == [StatusCode.ERROR] * 2


def test_a_trace_that_begins_here_has_no_parent() -> None:
    own, _call = spans(context=SpanContext("a" * 32, "b" * 16, "c" * 16))
    assert own.parent is None


def test_the_sender_is_named_unless_the_environment_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resource_of_gateway().attributes["service.name"] == "lorekeeper-gateway"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "edge")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    named = resource_of_gateway().attributes
    assert (named["service.name"], named["deployment.environment.name"]) == ("edge", "test")


class Receiver(InMemorySpanExporter):
    """Takes what it gets, or nothing."""

    is_away = False

    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.FAILURE if self.is_away else super().export(spans)  # type: ignore[arg-type]


def test_of_each_batch_is_told_whether_it_was_sent() -> None:
    source, sink = os.pipe()
    told, tell = os.pipe()
    receiver = Receiver()
    working = threading.Thread(target=export_lines, args=(source, receiver), kwargs={"tell": tell})
    working.start()
    os.write(sink, line() * 2)
    assert os.read(told, 100) == b"sent 2\n"
    receiver.is_away = True
    os.write(sink, line())
    assert os.read(told, 100) == b"failed 1\n"
    os.close(sink)
    working.join()
    assert len(receiver.get_finished_spans()) == 4
    for end in (source, told, tell):
        os.close(end)


def test_lines_go_in_batches_however_the_pipe_cuts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock that stands still: whoever waited for more after the end would wait for ever.
    monkeypatch.setattr("gateway.spans.export.time", SimpleNamespace(monotonic=lambda: 0.0))
    source, sink = os.pipe()
    whole = b"".join(b"%d\n" % number for number in range(1200))
    for start in range(0, len(whole), 1000):
        os.write(sink, whole[start : start + 1000])
    os.close(sink)
    found = list(batches(source))
    os.close(source)
    assert [int(one) for batch in found for one in batch] == list(range(1200))
    assert [len(batch) for batch in found] == [512, 512, 176]
