"""What every move of an alias comes to, and the way back. The caller has locked the alias and the versions."""

from collections.abc import Sequence

from django.db import transaction

from registry.actors import Actor
from registry.models import Version
from registry.states import VersionState
from releases import events
from releases.history import Moved, rollback_target
from releases.models import Alias
from releases.ports import PORTS
from releases.selectors import lock_versions
from releases.states import MoveKind
from releases.transitions import move_alias


def carry_out_move(alias: Alias, *, actor: Actor, to: Version, kind: MoveKind, reason: str) -> Alias:
    """Point the alias at ``to`` and tell of it."""
    previous = alias.version
    move_alias(alias, actor=actor, to=to, kind=kind, reason=reason)
    return announce_move(alias, actor=actor, previous=previous, reason=reason)


def announce_move(alias: Alias, *, actor: Actor, previous: Version | None, reason: str) -> Alias:
    """Record where the alias points now, and have that warmed once it is committed."""
    events.alias_moved(actor=actor, alias=alias, previous=previous, reason=reason)
    target = alias.version_id
    transaction.on_commit(lambda: PORTS.prewarm(actor=actor, version_id=target), robust=True)
    return alias


def lock_way_back(alias: Alias, history: Sequence[Moved], *, may_stay: bool) -> Version | None:
    """The version that a rollback goes to, locked with all of the alias's ``history``; None if there is none.

    ``may_stay``: the one that the alias points at will do, if it isn't lost itself.
    """
    versions = lock_versions({row.version_id for row in history})
    lost = {pk for pk, version in versions.items() if version.state == VersionState.REVOKED or version.purged_at}
    if may_stay and alias.version_id not in lost:
        return versions[alias.version_id]
    target = rollback_target(history, lost=lost)
    return None if target is None else versions[target]
