"""W3C Trace Context: whose child a request's span is, and what the engine is told."""

import pytest

from gateway.spans.context import begin_spans

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_request_of_a_sampled_trace_is_a_child_of_its_caller_and_the_engines_is_one_of_the_call() -> None:
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
    context = begin_spans(headers, share=0.0)
    assert context is not None
    assert (context.trace_id, context.parent_id, context.state) == (TRACE, PARENT, "vendor=1")
    assert context.traceparent == f"00-{TRACE}-{context.call_id}-01"
    assert len({context.span_id, context.call_id, PARENT}) == 3


@pytest.mark.parametrize(("length", "kept"), [(512, 512), (513, 0), (60_000, 0)])
def test_a_state_longer_than_must_be_passed_on_is_dropped(length: int, kept: int) -> None:
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "v=" + "x" * (length - 2)}
    context = begin_spans(headers, share=0.0)
    assert context is not None
    assert (context.parent_id, len(context.state)) == (PARENT, kept)


def test_a_caller_that_does_not_sample_is_followed() -> None:
    assert begin_spans({"traceparent": f"00-{TRACE}-{PARENT}-00"}, share=1.0) is None


def test_a_later_version_of_the_header_is_read_as_far_as_it_is_known() -> None:
    context = begin_spans({"traceparent": f"cc-{TRACE}-{PARENT}-01-what-the-future-brings"}, share=0.0)
    assert context is not None
    assert context.parent_id == PARENT


@pytest.mark.parametrize(
    "said",
    [
        "",
        "nonsense",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}",
    ],
)
def test_what_is_no_traceparent_begins_a_trace_of_its_own(said: str) -> None:
    context = begin_spans({"traceparent": said, "tracestate": "vendor=1"}, share=1.0)
    assert context is not None
    assert (context.parent_id, context.state) == ("", "")
    assert context.trace_id not in (TRACE, "0" * 32)


def test_of_traces_that_begin_here_the_share_that_is_set_is_kept() -> None:
    kept = [begin_spans({}, share=0.2) is not None for _request in range(2000)]
    assert 300 < sum(kept) < 500
    assert not any(begin_spans({}, share=0.0) for _request in range(100))
