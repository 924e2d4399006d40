"""The tenants' limits in this process: admission before a request, the account after it, headers that tell of it."""

import math
import time
from collections.abc import Callable
from typing import Final

from gateway.errors import GpuTimeExceeded, RateLimited, RequestsExceeded, TokensExceeded, TooManyConcurrent
from gateway.routing.admit import Account, Limit, Refusal, admit, settle
from gateway.routing.buckets import Bucket
from gateway.routing.snapshot import TenantRules

_ERRORS: dict[Limit, tuple[type[RateLimited], str]] = {
    Limit.CONCURRENT: (TooManyConcurrent, "requests at once"),
    Limit.REQUESTS: (RequestsExceeded, "requests per minute"),
    Limit.TOKENS: (TokensExceeded, "tokens per minute"),
    Limit.GPU: (GpuTimeExceeded, "milliseconds of engine time per minute"),
}
_ALPHA: Final = 0.05
_FIRST_MEAN: Final = 128.0
_IDLE_S: Final = 60.0


class TenantLimits:
    """One account per tenant. Several processes behind one port each grant their part of every limit."""

    def __init__(self, *, processes: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        """`processes` is how many share the limits, this one among them."""
        self._processes = processes
        self._share = 1 / processes
        self._clock = clock
        self._accounts: dict[str, Account] = {}
        self._mean_answer = _FIRST_MEAN
        self._refused: dict[Limit, int] = dict.fromkeys(Limit, 0)

    @property
    def mean_answer(self) -> int:
        """Tokens of an answer, on the average of the last ones: what is expected of one that sets no limit."""
        return int(self._mean_answer)

    @property
    def refused(self) -> dict[Limit, int]:
        """How many requests each limit has refused."""
        return self._refused

    def enter(self, rules: TenantRules, *, tokens: int = 0) -> Account:
        """Admit a request of so many estimated tokens, or raise RateLimited. End it with `leave`."""
        account = self._accounts.get(rules.tenant)
        if account is None:
            account = self._accounts[rules.tenant] = Account(rules)
            account.fit(rules, share=self._share, now=self._clock())
        elif account.rules is not rules:
            account.fit(rules, share=self._share, now=self._clock())
        if account.is_unlimited:
            account.in_flight += 1
            return account
        concurrent = rules.concurrent_requests
        if concurrent is not None:
            concurrent = -(-concurrent // self._processes)
        refusal = admit(account, tokens=tokens, concurrent=concurrent, now=self._clock())
        if refusal is None:
            return account
        self._refused[refusal.limit] += 1
        raise _error(refusal)

    def leave(
        self,
        account: Account,
        *,
        estimated: int,
        prompt: int | None,
        completion: int | None,
        engine_ms: float,
        at_least: int = 0,
    ) -> None:
        """A request is over: tokens as the engine counted them (None where it didn't), and its time in the engine.

        Where it didn't count, what was estimated stands, or what it came to `at_least`, by what went to the client.
        """
        if completion:
            self._mean_answer += _ALPHA * (completion - self._mean_answer)
        if account.is_unlimited:
            account.in_flight -= 1
            return
        tokens = max(estimated, at_least) if prompt is None else prompt + (completion or 0)
        settle(account, estimated=estimated, tokens=tokens, engine_ms=engine_ms, now=self._clock())

    def headers(self, tenant: str) -> dict[bytes, bytes]:
        """OpenAI's x-ratelimit-* headers for the limits of a tenant that has just asked; empty if it has none."""
        found: dict[bytes, bytes] = {}
        account = self._accounts[tenant]
        rules = account.rules
        if account.requests is not None and rules.requests_per_minute is not None:
            found |= _told(b"requests", rules.requests_per_minute, account.requests, self._processes)
        if account.tokens is not None and rules.tokens_per_minute is not None:
            found |= _told(b"tokens", rules.tokens_per_minute, account.tokens, self._processes)
        return found

    def forget_idle(self) -> None:
        """Drop the accounts that are as good as new, so that tenants who are gone take no memory."""
        now = self._clock()
        for tenant in [name for name, account in self._accounts.items() if _is_fresh(account, now)]:
            del self._accounts[tenant]


def _error(refusal: Refusal) -> RateLimited:
    kind, what = _ERRORS[refusal.limit]
    wait_s = max(1, math.ceil(refusal.retry_after_s))
    message = f"This tenant's limit of {refusal.allowed} {what} is reached. Try again in {wait_s} s."
    return kind(message, retry_after_s=wait_s)


def _told(name: bytes, limit: int, bucket: Bucket, processes: int) -> dict[bytes, bytes]:
    left = min(limit, max(0, int(bucket.level * processes)))
    return {
        b"x-ratelimit-limit-" + name: b"%d" % limit,
        b"x-ratelimit-remaining-" + name: b"%d" % left,
        b"x-ratelimit-reset-" + name: b"%.3fs" % bucket.full_in_s,
    }


def _is_fresh(account: Account, now: float) -> bool:
    buckets = (account.requests, account.tokens, account.gpu)
    return not account.in_flight and all(bucket is None or bucket.fill(now) >= bucket.limit for bucket in buckets)
