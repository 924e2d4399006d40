"""Where a rollback goes: a pure reading of an alias's history.

The rule: a rollback undoes the newest move that still stands. The alias goes back to the version that served before
the current one was moved in; what was rolled back from is gone for good, so that rolling back again goes further back
and never to and fro. Versions that are lost meanwhile (revoked, or their files removed) are passed over.

A rollback to the version that serves already undoes no move: it ended a release before its candidate was moved in.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from uuid import UUID

from releases.states import MoveKind


@dataclass(frozen=True, slots=True)
class Moved:
    """One row of an alias's history; ``revision`` is the one that the alias was moved to."""

    kind: MoveKind
    version_id: UUID
    revision: int


def standing_moves(history: Iterable[Moved]) -> list[Moved]:
    """The moves that no rollback has undone, oldest first; the last one brought the version that serves now."""
    standing: list[Moved] = []
    for row in history:
        if row.kind is MoveKind.ROLLBACK and row.version_id == standing[-1].version_id:
            continue
        if row.kind is MoveKind.ROLLBACK:
            standing.pop()
            while standing[-1].version_id != row.version_id:
                standing.pop()
        else:
            standing.append(row)
    return standing


def rollback_target(history: Iterable[Moved], *, lost: Container[UUID]) -> UUID | None:
    """The version to go back to, or None if there is none. ``history`` is in the order in which it happened."""
    *before, current = (move.version_id for move in standing_moves(history))
    good = (version for version in reversed(before) if version != current and version not in lost)
    return next(good, None)
