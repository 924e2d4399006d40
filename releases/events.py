"""One function per audit event of releases. Tags read ``subject:object:action``.

Each is called by a service inside the transaction that makes the change.
"""

from typing import Any

from registry.actors import Actor
from registry.audit import append_record
from registry.models import Version
from releases.models import Alias
from releases.states import MoveKind

_VERBS = {MoveKind.SET: "set", MoveKind.MOVE: "move", MoveKind.ROLLBACK: "roll_back"}


def alias_moved(*, actor: Actor, alias: Alias, previous: Version | None, reason: str) -> None:
    """An alias was made, moved or rolled back; it points to its new version already."""
    append_record(
        actor=actor,
        chain=alias.tenant.name,
        action=f"tenant:alias:{_VERBS[MoveKind(alias.moved_by)]}",
        object_={"kind": "alias", "id": str(alias.pk), "name": str(alias)},
        before=None if previous is None else _target(previous, alias.revision - 1),
        after=_target(alias.version, alias.revision),
        reason=reason,
    )


def _target(version: Version, revision: int) -> dict[str, Any]:
    return {
        "version": str(version),
        "version_id": str(version.pk),
        "root_digest": version.root_digest,
        "revision": revision,
    }
