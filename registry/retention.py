"""Which versions of an adapter keep their bytes: a pure decision over facts.

Retention removes bytes alone. The version stays with its state, reports, signatures and audit records; it can be
neither approved nor aliased again.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from registry.states import VersionState

_IN_PROGRESS = frozenset({VersionState.UPLOADING, VersionState.VALIDATING})


class Keep(StrEnum):
    """Why a version keeps its bytes; ``PURGED`` means that it has none any more."""

    PURGED = "purged"
    IN_PROGRESS = "in_progress"
    RECENT = "recent"
    ALIASED = "aliased"
    ROLLBACK = "rollback_target"
    ON_NODES = "on_nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One version.

    Attributes:
        state_changed_at: when it came to its state: for an approved one, when it was approved.
        is_aliased: an alias points at it or did within the time to keep.
        is_rollback_target: an alias would go back to it.
        is_on_nodes: a node said it has it, and not since that it is gone; or it was told to get it.

    """

    version_id: UUID
    state: VersionState
    state_changed_at: datetime
    is_purged: bool
    is_aliased: bool
    is_rollback_target: bool
    is_on_nodes: bool


def keep_reason(facts: Facts, *, keep: timedelta, now: datetime) -> Keep | None:
    """Why the version keeps its bytes, or None if they go."""
    if facts.is_purged:
        return Keep.PURGED
    if facts.state in _IN_PROGRESS:
        return Keep.IN_PROGRESS
    if facts.is_aliased:
        return Keep.ALIASED
    if facts.is_rollback_target:
        return Keep.ROLLBACK
    if facts.is_on_nodes:
        return Keep.ON_NODES
    return Keep.RECENT if facts.state_changed_at > now - keep else None


def plan_digest(version_ids: Iterable[UUID]) -> str:
    """What a plan is called: SHA-256 (hex) over the versions it removes, in any order."""
    listed = json.dumps(sorted(str(version_id) for version_id in version_ids), separators=(",", ":"))
    return hashlib.sha256(listed.encode()).hexdigest()
