"""Whether a tenant's request may begin: its concurrent requests, requests, tokens and engine time per minute."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.routing.buckets import Bucket
from gateway.routing.snapshot import TenantRules

_BYTES_PER_TOKEN: Final = 4
_CONCURRENT_WAIT_S: Final = 1.0
_LONGEST_ANSWER: Final = 1_000_000
# An engine answers each of what stands in these.
_PROMPTS: Final = ("prompt", "prompt_embeds")
# How many answers it makes to each: some make as many as the second says, and send fewer.
_CHOICES: Final = ("n", "best_of")


class Limit(enum.StrEnum):
    """What ran out; the value stands in the error."""

    CONCURRENT = "concurrent_requests"
    REQUESTS = "requests"
    TOKENS = "tokens"
    GPU = "gpu_time"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What ran out, how much of it a minute gives (of requests at once: how many), and when to come back."""

    limit: Limit
    allowed: int
    retry_after_s: float


class Account:
    """What one tenant has used, in one process; `rules` are those that the buckets were made for."""

    __slots__ = ("gpu", "in_flight", "is_unlimited", "requests", "rules", "tokens")

    def __init__(self, rules: TenantRules) -> None:
        """Begin with nothing used; `fit` makes the buckets."""
        self.rules = rules
        self.in_flight = 0
        self.is_unlimited = False
        self.requests: Bucket | None = None
        self.tokens: Bucket | None = None
        self.gpu: Bucket | None = None

    def fit(self, rules: TenantRules, *, share: float, now: float) -> None:
        """Follow new rules: a limit that changed keeps what was used of it, in proportion."""
        self.rules = rules
        self.requests = _fitted(self.requests, rules.requests_per_minute, share=share, now=now)
        self.tokens = _fitted(self.tokens, rules.tokens_per_minute, share=share, now=now)
        self.gpu = _fitted(self.gpu, rules.gpu_ms_per_minute, share=share, now=now)
        buckets = (self.requests, self.tokens, self.gpu)
        self.is_unlimited = rules.concurrent_requests is None and all(bucket is None for bucket in buckets)


def admit(account: Account, *, tokens: int, concurrent: int | None, now: float) -> Refusal | None:
    """Count a request of so many (estimated) tokens and return None, or count nothing and say what ran out.

    `concurrent` is how many requests may be under way at once. What only shows at the end, engine time, must merely
    not be in debt.
    """
    refusal = _refusal(account, tokens=tokens, concurrent=concurrent, now=now)
    if refusal is not None:
        return refusal
    account.in_flight += 1
    if account.requests is not None:
        account.requests.take(1)
    if account.tokens is not None:
        account.tokens.take(tokens)
    return None


def settle(account: Account, *, estimated: int, tokens: int | None, engine_ms: float, now: float) -> None:
    """A request is over: put its tokens right (None: the engine didn't say, so the estimate stands), count its time."""
    account.in_flight -= 1
    if account.tokens is not None and tokens is not None:
        account.tokens.fill(now)
        account.tokens.take(tokens - estimated)
    if account.gpu is not None:
        account.gpu.fill(now)
        account.gpu.take(engine_ms)


def estimate_tokens(body: Mapping[str, object], *, bounds: Sequence[str], body_bytes: int, mean_answer: int) -> int:
    """Tokens that a request may come to: those of its body, and the longest answers that it allows to all its prompts.

    An answer is bounded by the largest of the fields `bounds`, of which each kind of engine follows another; where
    there is none, the mean of the answers so far is taken. What is too much is given back at the end.
    """
    longest = max((_number(body.get(name)) for name in bounds), default=0)
    choices = max(_number(body.get(name)) for name in _CHOICES)
    prompts = sum(_prompts(body.get(name)) for name in _PROMPTS)
    answers = (longest or mean_answer) * max(1, choices) * max(1, prompts)
    return prompt_tokens(body_bytes) + min(answers, _LONGEST_ANSWER)


def prompt_tokens(body_bytes: int) -> int:
    """Tokens that a body of so many bytes may come to: one for each 4 bytes."""
    return body_bytes // _BYTES_PER_TOKEN


def _number(value: object) -> int:
    """A count as engines read one, also where it comes as text or with a point; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0
    try:
        number = min(float(value), _LONGEST_ANSWER)
    except (ValueError, OverflowError):
        return 0
    return int(number) if number > 0 else 0


def _prompts(value: object) -> int:
    """How many prompts it is: a list of numbers is one, as tokens."""
    if isinstance(value, list):
        return 1 if value and isinstance(value[0], int) else len(value)
    return 0 if value is None else 1


def _refusal(account: Account, *, tokens: int, concurrent: int | None, now: float) -> Refusal | None:
    if concurrent is not None and account.in_flight >= concurrent:
        return Refusal(Limit.CONCURRENT, concurrent, _CONCURRENT_WAIT_S)
    requests, counted, gpu = account.requests, account.tokens, account.gpu
    if requests is not None and requests.fill(now) < 1:
        return _ran_out(Limit.REQUESTS, account.rules.requests_per_minute, requests, 1)
    if counted is not None and counted.fill(now) < min(tokens, counted.limit):
        return _ran_out(Limit.TOKENS, account.rules.tokens_per_minute, counted, tokens)
    if gpu is not None and gpu.fill(now) <= 0:
        return _ran_out(Limit.GPU, account.rules.gpu_ms_per_minute, gpu, 1)
    return None


def _ran_out(limit: Limit, allowed: int | None, bucket: Bucket, amount: float) -> Refusal:
    return Refusal(limit, allowed or 0, bucket.wait_s(amount))


def _fitted(bucket: Bucket | None, limit: int | None, *, share: float, now: float) -> Bucket | None:
    if limit is None:
        return None
    # A bucket that can't hold one request would never let any through.
    own = max(1.0, limit * share)
    if bucket is None:
        return Bucket(own, now=now)
    if bucket.limit != own:
        bucket.fill(now)
        bucket.resize(own)
    return bucket
