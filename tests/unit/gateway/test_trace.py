from datetime import UTC, datetime

from gateway.trace import Trace


def test_the_wait_for_a_load_is_not_counted_as_queueing() -> None:
    trace = Trace(request_id="req-1", arrived=100.0, load_s=2.0, sent_at=102.5, first_byte_at=103.0)
    record = trace.record(status=200, error_kind="")
    assert (record.queue_ms, record.load_ms, record.ttft_ms) == (500, 2000, 3000)


def test_a_request_that_never_went_out_has_no_times_of_an_engine() -> None:
    record = Trace(request_id="req-1").record(status=404, error_kind="model_not_found")
    assert (record.queue_ms, record.load_ms, record.ttft_ms) == (0, 0, 0)
    assert (record.version_id, record.node, record.tier, record.alias) == (None, None, "", "")


def test_a_record_says_when_the_request_came_in_utc() -> None:
    before = datetime.now(UTC)
    assert before <= Trace(request_id="req-1").record(status=200, error_kind="").at <= datetime.now(UTC)
