"""The gateway's end: within its bound, nothing waits, and what is lost is counted."""

from gateway.spans.sender import Receiver, Spans
from gateway.trace import Trace

SECRET = "authorization=secret-three"


def make_spans(*, bound: int = 3) -> Spans:
    receiver = Receiver("http://127.0.0.1:4318/v1/traces", SECRET)
    return Spans(receiver, adapter_of=lambda _version: "acme/tone", bound=bound)


def ended(spans: Spans, headers: dict[str, str]) -> Trace:
    trace = Trace("req-1", tenant="acme", path="chat")
    spans.begin(trace, headers)
    spans.end(trace, trace.record(status=200, error_kind=""), route="/v1/chat/completions")
    return trace


def test_what_comes_beyond_the_bound_is_dropped_and_counted() -> None:
    spans = make_spans(bound=3)
    for _request in range(5):
        ended(spans, {})
    assert (spans.pending, spans.dropped, spans.sent) == (3, 2, 0)


def test_a_request_that_its_caller_does_not_trace_costs_nothing_and_its_headers_go_on_as_they_are() -> None:
    spans, trace = make_spans(), Trace("req-1")
    headers = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-00"}
    assert spans.begin(trace, headers) is headers
    spans.end(trace, trace.record(status=200, error_kind=""), route="/v1/chat/completions")
    assert spans.pending == 0


def test_the_engine_is_told_of_the_call_and_of_nothing_else_that_is_new() -> None:
    spans, trace = make_spans(), Trace("req-1")
    forwarded = spans.begin(trace, {"accept": "*/*", "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
    assert trace.span is not None
    assert forwarded == {"accept": "*/*", "traceparent": trace.span.traceparent}


def test_the_address_may_be_printed_and_the_headers_may_not() -> None:
    assert "secret" not in repr(Receiver("http://127.0.0.1:4318/v1/traces", SECRET))
