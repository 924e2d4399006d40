import pytest

from gateway.routing.admit import Account, Limit, Refusal, admit, estimate_tokens, settle
from gateway.routing.snapshot import TenantRules


def account(share: float = 1.0, **limits: int) -> Account:
    rules = TenantRules("acme", **limits)  # type: ignore[arg-type]  # the limits are numbers
    made = Account(rules)
    made.fit(rules, share=share, now=0.0)
    return made


def enter(found: Account, *, tokens: int = 0, now: float = 0.0) -> Refusal | None:
    return admit(found, tokens=tokens, concurrent=found.rules.concurrent_requests, now=now)


def end(found: Account, *, estimated: int = 0, tokens: int | None = None, engine_ms: float = 0, now: float = 0) -> None:
    settle(found, estimated=estimated, tokens=tokens, engine_ms=engine_ms, now=now)


def test_a_tenant_without_limits_is_always_admitted() -> None:
    found = account()
    assert all(enter(found, tokens=10**6) is None for _ in range(1000))
    assert found.in_flight == 1000


def test_the_request_after_the_last_of_a_minute_is_refused_and_told_when_to_come_back() -> None:
    found = account(requests_per_minute=3)
    assert [enter(found) for _ in range(3)] == [None] * 3
    refusal = enter(found)
    assert refusal is not None
    assert (refusal.limit, refusal.allowed) == (Limit.REQUESTS, 3)
    assert refusal.retry_after_s == pytest.approx(20)
    assert enter(found, now=20.001) is None


def test_a_refused_request_uses_nothing_up() -> None:
    found = account(requests_per_minute=10, tokens_per_minute=100)
    assert enter(found, tokens=100) is None
    assert [getattr(enter(found, tokens=1), "limit", None) for _ in range(20)] == [Limit.TOKENS] * 20
    assert found.in_flight == 1
    assert found.requests is not None
    assert found.requests.level == 9


def test_as_many_requests_at_once_as_may_be() -> None:
    found = account(concurrent_requests=2)
    assert [enter(found), enter(found)] == [None, None]
    refusal = enter(found)
    assert refusal is not None
    assert (refusal.limit, refusal.allowed) == (Limit.CONCURRENT, 2)
    end(found)
    assert enter(found) is None


def test_an_estimate_that_was_too_high_is_given_back() -> None:
    found = account(tokens_per_minute=100)
    assert enter(found, tokens=90) is None
    end(found, estimated=90, tokens=10)
    assert enter(found, tokens=90) is None


def test_an_estimate_that_was_too_low_becomes_a_debt() -> None:
    found = account(tokens_per_minute=60)
    assert enter(found, tokens=10) is None
    end(found, estimated=10, tokens=90)
    refusal = enter(found, tokens=1)
    assert refusal is not None
    assert refusal.retry_after_s == pytest.approx(31)


def test_an_estimate_stands_where_the_engine_counts_nothing() -> None:
    found = account(tokens_per_minute=100)
    assert enter(found, tokens=90) is None
    end(found, estimated=90, tokens=None)
    assert enter(found, tokens=90) is not None


def test_a_request_larger_than_the_limit_is_admitted_when_nothing_was_used() -> None:
    found = account(tokens_per_minute=100)
    assert enter(found, tokens=5000) is None
    refusal = enter(found, tokens=1)
    assert refusal is not None
    assert refusal.limit is Limit.TOKENS


def test_engine_time_counts_when_it_is_over() -> None:
    found = account(gpu_ms_per_minute=60_000)
    assert [enter(found), enter(found)] == [None, None]
    end(found, engine_ms=70_000)
    refusal = enter(found)
    assert refusal is not None
    assert refusal.limit is Limit.GPU
    assert refusal.retry_after_s == pytest.approx(10, abs=0.01)
    assert enter(found, now=10.5) is None


def test_a_process_grants_its_share_but_never_less_than_one() -> None:
    found = account(share=0.25, requests_per_minute=8)
    assert [enter(found) is None for _ in range(3)] == [True, True, False]
    tiny = account(share=0.25, requests_per_minute=1)
    assert [enter(tiny) is None for _ in range(2)] == [True, False]


def test_new_limits_hold_at_once_and_forget_nothing() -> None:
    found = account(requests_per_minute=10)
    for _ in range(5):
        enter(found)
    found.fit(TenantRules("acme", requests_per_minute=2), share=1.0, now=0.0)
    assert [enter(found) is None for _ in range(2)] == [True, False]
    found.fit(TenantRules("acme"), share=1.0, now=0.0)
    assert enter(found) is None


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({}, 100 + 50),
        ({"max_tokens": 7}, 100 + 7),
        ({"max_completion_tokens": 9, "max_tokens": 7}, 100 + 9),
        ({"max_completion_tokens": 1, "max_tokens": 7}, 100 + 7),
        ({"max_output_tokens": 5}, 100 + 50),
        ({"max_completion_tokens": None, "max_tokens": 7.0}, 100 + 7),
        ({"max_tokens": "7", "n": " 3 "}, 100 + 21),
        ({"max_tokens": 7, "n": 2, "best_of": 4}, 100 + 28),
        ({"max_tokens": 7, "prompt": "one"}, 100 + 7),
        ({"max_tokens": 7, "prompt": ["one", "two", "three"], "n": 2}, 100 + 42),
        ({"max_tokens": 7, "prompt": [1, 2, 3]}, 100 + 7),
        ({"max_tokens": 7, "prompt": [[1, 2], [3]]}, 100 + 14),
        ({"max_tokens": 7, "prompt": [], "prompt_embeds": ["a", "b"]}, 100 + 14),
        ({"prompt": ["one"] * 4}, 100 + 200),
        ({"max_tokens": 7, "n": 3}, 100 + 21),
        ({"max_tokens": True}, 100 + 50),
        ({"max_tokens": -1}, 100 + 50),
        ({"max_tokens": "seven", "n": [3]}, 100 + 50),
        ({"max_tokens": "nan"}, 100 + 50),
        ({"max_tokens": "inf"}, 100 + 1_000_000),
        ({"max_tokens": 10**30, "n": 10**30}, 100 + 1_000_000),
    ],
)
def test_tokens_are_estimated_from_the_size_and_the_longest_answer(body: dict[str, object], tokens: int) -> None:
    bounds = ("max_completion_tokens", "max_tokens")
    assert estimate_tokens(body, bounds=bounds, body_bytes=400, mean_answer=50) == tokens
