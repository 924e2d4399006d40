"""The form in which a validation report reaches the registry; the checks themselves live above, in the workers."""

from dataclasses import dataclass
from typing import Any, Literal


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

    """

    verdict: Literal["accept", "warn", "reject"]
    policy_version: str
    summary: str
    document: dict[str, Any]
    digest: str
    rank: int | None
    target_modules: tuple[str, ...]
