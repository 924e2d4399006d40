from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from gateway.metrics.board import Board
from gateway.metrics.counts import Counts, Figures, added, read_figures, write_figures
from gateway.metrics.exposition import exposition
from gateway.metrics.pages import Pages
from gateway.records.shapes import RequestRecord

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
V1 = UUID(int=1)


def record(
    *, status: int = 200, error: str = "", tier: str = "gpu", ttft_ms: int = 20, total_ms: int = 80, age_s: float = 1.0
) -> RequestRecord:
    at = NOW - timedelta(seconds=age_s)
    return RequestRecord(
        at, "req-1", "acme", "support", V1, "n1", tier, status, error, 0, 0, ttft_ms, total_ms, 3, 5, False, "chat"
    )


def figures(counts: Counts, **breakers: str) -> Figures:
    return counts.figures(now=NOW, adapter_of={V1: "tone"}.get, gauges={"in_flight": 2}, breakers=breakers)


def counted(*records: RequestRecord, before: Figures | None = None) -> Counts:
    counts = Counts(before)
    for each in records:
        counts.observe(each)
    return counts


def page(*all_figures: Figures) -> list[str]:
    return exposition(added(all_figures), accept="text/plain")[0].decode().splitlines()


def test_requests_are_counted_by_how_they_ended_and_how_long_they_took() -> None:
    lines = page(figures(counted(record(), record(), record(status=404, error="model_not_found", ttft_ms=0))))
    assert 'lorekeeper_gateway_requests_total{error="",path="chat",status="200"} 2.0' in lines
    assert 'lorekeeper_gateway_requests_total{error="model_not_found",path="chat",status="404"} 1.0' in lines
    assert 'lorekeeper_gateway_first_byte_seconds_bucket{le="0.01"} 0.0' in lines
    assert 'lorekeeper_gateway_first_byte_seconds_bucket{le="0.025"} 2.0' in lines
    assert "lorekeeper_gateway_first_byte_seconds_count 2.0" in lines
    assert "lorekeeper_gateway_request_seconds_sum 0.24" in lines


def test_the_window_tells_of_tiers_and_adapters_and_forgets() -> None:
    seen = counted(
        record(tier="disk", age_s=301), record(), record(tier="cpu"), record(status=502, error="engine_error")
    )
    lines = page(figures(seen))
    assert 'adapter_cache_hit_rate{tier="cpu"} 0.3333333333333333' in lines
    assert not [line for line in lines if 'tier="disk"' in line]
    assert 'requests_by_adapter{adapter="tone",tenant="acme"} 3.0' in lines
    assert 'error_rate_by_adapter{adapter="tone",tenant="acme"} 0.3333333333333333' in lines
    assert 'ttft_by_adapter{adapter="tone",quantile="0.95",tenant="acme"} 20.0' in lines


@pytest.mark.parametrize(
    ("status", "error", "failed"),
    [
        (200, "", 0),
        (200, "engine_broken", 1),
        (499, "client_gone", 0),
        (404, "model_not_found", 0),
        (429, "rate_limit_exceeded", 1),
        (503, "version_loading", 1),
    ],
)
def test_a_failure_is_what_the_client_did_not_cause(status: int, error: str, failed: int) -> None:
    (adapter,) = figures(counted(record(status=status, error=error)))["adapters"]
    assert adapter.failed == failed


def test_several_processes_are_added_up_as_they_stand_on_their_pages() -> None:
    pages = Pages(2)
    pages.write(0, write_figures(figures(counted(record()), n1="closed", n2="open")))
    pages.write(
        1, write_figures(figures(counted(record(), record(status=502, error="x")), n1="half_open", n2="closed"))
    )
    told = [found for found in (read_figures(pages.read(number)) for number in (0, 1)) if found is not None]
    lines = page(*told)
    assert 'lorekeeper_gateway_requests_total{error="",path="chat",status="200"} 2.0' in lines
    assert 'requests_by_adapter{adapter="tone",tenant="acme"} 3.0' in lines
    assert "lorekeeper_gateway_in_flight 4.0" in lines
    assert 'lorekeeper_gateway_breaker{node="n1",state="half_open"} 1.0' in lines
    assert 'lorekeeper_gateway_breaker{node="n2",state="open"} 1.0' in lines


def test_an_age_and_a_shared_folder_are_not_added_up() -> None:
    gauges = {"snapshot_age_seconds": 3.0, "records_spooled_bytes": 100.0, "records_pending": 2.0}
    one = Figures(**{**figures(counted()), "gauges": gauges})
    lines = page(one, Figures(**{**one, "gauges": {**gauges, "snapshot_age_seconds": 1.0}}))
    assert "lorekeeper_gateway_snapshot_age_seconds 3.0" in lines
    assert "lorekeeper_gateway_records_spooled_bytes 100.0" in lines
    assert "lorekeeper_gateway_records_pending 4.0" in lines


def test_who_takes_the_place_of_a_process_that_died_goes_on_counting_where_it_ended() -> None:
    pages = Pages(2)
    pages.write(1, write_figures(figures(counted(record(), record()))))
    board = Board(token="", adapter_of=lambda _: None, gauges=dict, breakers=dict, place=(1, pages))
    board.counts.observe(record())
    assert b'requests_total{error="",path="chat",status="200"} 3.0' in board.page("")[0]


def test_adapters_beyond_the_bound_are_one_entry() -> None:
    one = figures(counted(record()))
    (adapter,) = one["adapters"]
    many = [adapter._replace(adapter=f"a{number}", requests=1) for number in range(60)]
    lines = page(Figures(**{**one, "adapters": many}))
    names = [line for line in lines if line.startswith("requests_by_adapter{")]
    assert len(names) == 51
    assert 'requests_by_adapter{adapter="_other",tenant="_other"} 10.0' in names


def test_only_who_has_the_token_may_see_the_figures() -> None:
    board = Board(token="a-token", adapter_of=lambda _: None, gauges=dict, breakers=dict)
    assert board.may_be_seen_by("Bearer a-token")
    assert not any(
        map(board.may_be_seen_by, (None, "", "Bearer", "Bearer b-token", "Basic a-token", "Bearer a-tokené"))
    )
    assert not Board(token="", adapter_of=lambda _: None, gauges=dict, breakers=dict).may_be_seen_by("Bearer ")


def test_a_page_is_whole_or_empty() -> None:
    pages = Pages(2)
    assert pages.read(0) == b""
    pages.write(0, b"abc")
    pages.write(0, b"z")
    assert (pages.read(0), pages.read(1)) == (b"z", b"")
    assert (pages.others(0), pages.others(1)) == ([], [b"z"])
    with pytest.raises(ValueError, match="fit"):
        pages.write(0, b"x" * (pages.largest + 1))
