"""The form in which a validation report reaches the registry; the checks themselves live above, in the workers."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import rfc8785

# Read where a version is validated and by every node that loads it. Nothing in it means anything to a chat template.
PROBE_TEXT: Final = "Dear customer, the weather is fine today and the old lighthouse opens at nine. How can I help you?"
MAX_PROBE_TOKENS: Final = 4096
MAX_PROBE_TEXT: Final = 8000


@dataclass(frozen=True, slots=True)
class ProbeReference:
    """How the base and the adapter read a fixed text where they were validated; nodes compare their engine with it.

    Attributes:
        prompt: the text.
        base: the base's log-probability (in nats) of each token after the first.
        adapter: the adapter's, of the same tokens.

    """

    prompt: str
    base: tuple[float, ...]
    adapter: tuple[float, ...]

    @property
    def digest(self) -> str:
        """SHA-256 in hex over the RFC 8785 form."""
        return hashlib.sha256(rfc8785.dumps(self.to_json())).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return {"prompt": self.prompt, "base": list(self.base), "adapter": list(self.adapter)}

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read what `to_json` gave.

        Raises:
            ValueError: something is missing, unknown, or no log-probability.

        """
        if not isinstance(data, Mapping) or data.keys() != {"prompt", "base", "adapter"}:
            raise ValueError("a reference has prompt, base and adapter")
        prompt = data["prompt"]
        if not isinstance(prompt, str) or not 1 <= len(prompt) <= MAX_PROBE_TEXT:
            raise ValueError(f"prompt must be a text of 1 to {MAX_PROBE_TEXT} characters")
        base, adapter = _log_probabilities(data, "base"), _log_probabilities(data, "adapter")
        if len(base) != len(adapter):
            raise ValueError("base and adapter have read different numbers of tokens")
        return cls(prompt=prompt, base=base, adapter=adapter)


def _log_probabilities(data: Mapping[str, object], name: str) -> tuple[float, ...]:
    values = data[name]
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_PROBE_TOKENS:
        raise ValueError(f"{name} must be a list of 1 to {MAX_PROBE_TOKENS} log-probabilities")
    if not all(isinstance(value, int | float) and math.isfinite(value) and value <= 0 for value in values):
        raise ValueError(f"{name} holds what is no log-probability")
    return tuple(map(float, values))


@dataclass(frozen=True, slots=True)
class StoredReport:
    """One run of the checks.

    Attributes:
        verdict: accept, warn or reject.
        policy_version: which rules were applied.
        summary: the first reason in one sentence; empty when accepted.
        document: the whole report as JSON.
        digest: SHA-256 (hex) of the document's RFC 8785 form.
        rank: the true rank read from the tensors, when it could be read.
        target_modules: module names that carry weights, sorted.
        reference: how base and adapter read a fixed text, when they were run.

    """

    verdict: Literal["accept", "warn", "reject"]
    policy_version: str
    summary: str
    document: dict[str, Any]
    digest: str
    rank: int | None
    target_modules: tuple[str, ...]
    reference: ProbeReference | None = None
