import httpx
import pytest

from client.retry import RetryPolicy


@pytest.mark.parametrize(("attempt", "longest"), [(1, 0.25), (2, 0.5), (3, 1.0), (10, 5.0)])
def test_the_pause_doubles_up_to_a_limit_and_has_jitter(attempt: int, longest: float) -> None:
    delays = {RetryPolicy().delay_s(attempt) for _ in range(50)}
    assert longest / 2 <= min(delays) < max(delays) <= longest


@pytest.mark.parametrize(("header", "seconds"), [("0", 0.0), ("3", 3.0), ("86400", 30.0)])
def test_retry_after_is_honoured_within_reason(header: str, seconds: float) -> None:
    assert RetryPolicy().delay_s(1, httpx.Response(503, headers={"retry-after": header})) == seconds


def test_a_date_in_retry_after_is_left_to_the_back_off() -> None:
    response = httpx.Response(503, headers={"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"})
    assert RetryPolicy().delay_s(1, response) <= 0.25
