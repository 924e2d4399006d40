"""What one more request costs those that a node serves already.

CaraServe (Li et al., arXiv 2401.11240; Toppings, USENIX ATC 2025), its rank-aware scheduler: the cost of a node is
(added prefill / mean answer length + added decode) x the requests there, in ms per token, and infinite where the time
per token would break what was promised. One thing differs: the new request counts among those that pay, so that of two
idle nodes the faster one costs less. A prefill holds up a batch once, so it's spread over the tokens of an answer.

The paper fits its two lines to the adapters' ranks by measuring each engine beforehand. Here both are learnt from the
answers, node by node: engines pad their slots to the node's largest rank, so a step takes `floor + slope x requests`,
whatever the ranks in it are, and a node of large ranks shows by its slope.
"""

import math
from typing import Final

# Until answers have been seen; of the order of a small model on one GPU. Only what differs between nodes counts.
_FLOOR_MS: Final = 10.0
_SLOPE_MS: Final = 0.5
_PREFILL_MS: Final = 0.1
_MEAN_TOKENS: Final = 128.0

_FORGET: Final = 0.98  # the weight of an answer halves with the next 34
_LEAST_SPREAD: Final = 1.0  # of the batch size (variance): below it, no slope can be seen
_LEAST_SLOPE_MS: Final = 0.001
_ALPHA: Final = 0.05

# What it takes to bring an adapter from there into a slot before the first token.
TIER_MS: Final = {"gpu": 0.0, "": 0.0, "cpu": 5.0, "disk": 50.0}


class Pace:
    """How fast one node is, in ms: a token's step with so many requests in the batch, and a prompt's token."""

    __slots__ = ("_d", "_n", "_nd", "_nn", "_w", "floor_ms", "mean_tokens", "prefill_ms", "slope_ms")

    def __init__(self) -> None:
        """Begin with the same guess for every node."""
        self.floor_ms = _FLOOR_MS
        self.slope_ms = _SLOPE_MS
        self.prefill_ms = _PREFILL_MS
        self.mean_tokens = _MEAN_TOKENS
        self._w = self._n = self._d = self._nn = self._nd = 0.0

    def observe_decode(self, *, batch: int, tokens: int, took_ms: float) -> None:
        """An answer of so many tokens took so long after its first, with so many requests there."""
        if tokens < 1 or took_ms <= 0:
            return
        self.mean_tokens += _ALPHA * (tokens - self.mean_tokens)
        step_ms = took_ms / tokens
        self._w = self._w * _FORGET + 1
        self._n = self._n * _FORGET + batch
        self._d = self._d * _FORGET + step_ms
        self._nn = self._nn * _FORGET + batch * batch
        self._nd = self._nd * _FORGET + batch * step_ms
        self._fit()

    def observe_prefill(self, *, prompt_tokens: int, took_ms: float) -> None:
        """The first token came so long after a prompt of so many tokens was sent."""
        if prompt_tokens > 0 and took_ms > 0:
            self.prefill_ms += _ALPHA * (took_ms / prompt_tokens - self.prefill_ms)

    def _fit(self) -> None:
        """Least squares over what was observed, later answers counting more."""
        mean_n, mean_d = self._n / self._w, self._d / self._w
        spread = self._nn / self._w - mean_n * mean_n
        if spread >= _LEAST_SPREAD:
            self.slope_ms = max(_LEAST_SLOPE_MS, (self._nd / self._w - mean_n * mean_d) / spread)
        self.floor_ms = max(0.0, mean_d - self.slope_ms * mean_n)


def cost(pace: Pace, requests: int, *, prompt_tokens: int, tier: str, token_ms: float | None) -> float:
    """Of one more request on a node that serves so many; infinite if a token would then take longer than `token_ms`."""
    after = requests + 1
    if token_ms is not None and pace.floor_ms + pace.slope_ms * after > token_ms:
        return math.inf
    prefill_ms = prompt_tokens * pace.prefill_ms + TIER_MS.get(tier, 0.0)
    return (prefill_ms / max(1.0, pace.mean_tokens) + pace.slope_ms) * after
