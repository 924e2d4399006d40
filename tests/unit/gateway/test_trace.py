from datetime import UTC, datetime

from gateway.trace import Trace


def test_the_wait_for_a_load_is_not_counted_as_queueing() -> None:
    trace = Trace("req-1")
    trace.arrived, trace.load_s, trace.sent_at, trace.first_byte_at = 100.0, 2.0, 102.5, 103.0
    record = trace.record(status=200, error_kind="")
    assert (record.queue_ms, record.load_ms, record.ttft_ms) == (500, 2000, 3000)


def test_all_time_in_engines_counts_also_that_of_tries_that_failed() -> None:
    trace = Trace("req-1")
    for _ in range(2):
        trace.mark_sent()
        trace.sent_at -= 0.5
        trace.mark_answered()
    assert 1000 <= trace.record(status=200, error_kind="").engine_ms < 1100


def test_a_request_that_never_went_out_has_no_times_of_an_engine() -> None:
    record = Trace("req-1").record(status=404, error_kind="model_not_found")
    assert (record.queue_ms, record.load_ms, record.ttft_ms) == (0, 0, 0)
    assert (record.version_id, record.node, record.tier, record.alias) == (None, None, "", "")


def test_a_record_says_when_the_request_came_in_utc() -> None:
    before = datetime.now(UTC)
    assert before <= Trace("req-1").record(status=200, error_kind="").at <= datetime.now(UTC)
