import pytest

from gateway.errors import GpuTimeExceeded, RateLimited, RequestsExceeded, TokensExceeded, TooManyConcurrent
from gateway.limits import TenantLimits
from gateway.routing.admit import Limit
from gateway.routing.snapshot import TenantRules
from gateway.wire.replies import error_headers, status_and_type


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


RULES = TenantRules("acme", requests_per_minute=2, tokens_per_minute=100)


def test_a_refusal_says_which_limit_and_when_to_try_again() -> None:
    limits = TenantLimits(clock=Clock())
    for _ in range(2):
        limits.enter(RULES)
    with pytest.raises(RequestsExceeded) as caught:
        limits.enter(RULES)
    assert caught.value.message == "This tenant's limit of 2 requests per minute is reached. Try again in 30 s."
    assert status_and_type(caught.value) == (429, "requests")
    assert error_headers(caught.value)[b"retry-after"] == b"30"
    assert limits.refused[Limit.REQUESTS] == 1


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        (TenantRules("acme", concurrent_requests=1), TooManyConcurrent),
        (TenantRules("acme", requests_per_minute=1), RequestsExceeded),
        (TenantRules("acme", tokens_per_minute=10), TokensExceeded),
    ],
)
def test_each_limit_has_its_error(rules: TenantRules, kind: type[RateLimited]) -> None:
    limits = TenantLimits(clock=Clock())
    limits.enter(rules, tokens=10)
    with pytest.raises(kind):
        limits.enter(rules, tokens=10)


def test_engine_time_that_is_used_up_refuses_the_next() -> None:
    limits, rules = TenantLimits(clock=Clock()), TenantRules("acme", gpu_ms_per_minute=1000)
    limits.leave(limits.enter(rules), estimated=0, prompt=1, completion=1, engine_ms=1500)
    with pytest.raises(GpuTimeExceeded):
        limits.enter(rules)


@pytest.mark.parametrize(("at_least", "prompt", "left"), [(10, None, 80), (70, None, 30), (70, 1, 97)])
def test_what_the_engine_did_not_count_is_charged_as_it_was_estimated_or_as_it_went_to_the_client(
    at_least: int, prompt: int | None, left: int
) -> None:
    limits, rules = TenantLimits(clock=Clock()), TenantRules("acme", tokens_per_minute=100)
    account = limits.enter(rules, tokens=20)
    completion = None if prompt is None else 2
    limits.leave(account, estimated=20, at_least=at_least, prompt=prompt, completion=completion, engine_ms=1)
    assert limits.headers("acme")[b"x-ratelimit-remaining-tokens"] == b"%d" % left


def test_one_tenants_limit_is_not_anothers() -> None:
    limits = TenantLimits(clock=Clock())
    limits.enter(TenantRules("acme", concurrent_requests=1))
    limits.enter(TenantRules("other", concurrent_requests=1))


def test_several_processes_share_a_limit() -> None:
    limits = TenantLimits(processes=2, clock=Clock())
    limits.enter(RULES)
    with pytest.raises(RequestsExceeded, match="limit of 2 requests"):
        limits.enter(RULES)
    concurrent = TenantRules("other", concurrent_requests=3)
    limits.enter(concurrent)
    limits.enter(concurrent)
    with pytest.raises(TooManyConcurrent):
        limits.enter(concurrent)


def test_new_rules_hold_for_the_next_request() -> None:
    limits = TenantLimits(clock=Clock())
    limits.enter(TenantRules("acme"))
    limits.enter(TenantRules("acme", requests_per_minute=1))
    with pytest.raises(RequestsExceeded):
        limits.enter(TenantRules("acme", requests_per_minute=1))


def test_the_headers_say_what_is_left_and_when_it_is_full_again() -> None:
    limits = TenantLimits(clock=Clock())
    limits.enter(RULES, tokens=25)
    assert limits.headers(RULES.tenant) == {
        b"x-ratelimit-limit-requests": b"2",
        b"x-ratelimit-remaining-requests": b"1",
        b"x-ratelimit-reset-requests": b"30.000s",
        b"x-ratelimit-limit-tokens": b"100",
        b"x-ratelimit-remaining-tokens": b"75",
        b"x-ratelimit-reset-tokens": b"15.000s",
    }


def test_there_are_no_headers_without_limits() -> None:
    limits = TenantLimits(clock=Clock())
    limits.enter(TenantRules("acme"))
    assert limits.headers("acme") == {}


def test_what_an_answer_is_expected_to_come_to_follows_the_answers() -> None:
    limits = TenantLimits(clock=Clock())
    for _ in range(200):
        limits.leave(limits.enter(TenantRules("acme")), estimated=0, prompt=5, completion=20, engine_ms=1)
    assert limits.mean_answer == 20


def test_a_tenant_that_is_gone_takes_no_memory_and_one_in_debt_is_remembered() -> None:
    clock = Clock()
    limits = TenantLimits(clock=clock)
    account = limits.enter(RULES, tokens=100)
    limits.forget_idle()
    limits.leave(account, estimated=100, prompt=100, completion=0, engine_ms=1)
    limits.forget_idle()
    assert limits.enter(RULES) is account
    limits.leave(account, estimated=0, prompt=0, completion=0, engine_ms=1)
    clock.now = 120.0
    limits.forget_idle()
    assert limits.enter(RULES) is not account
