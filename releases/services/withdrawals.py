"""What happens to releases and splits when a version is withdrawn, in the same transaction.

Locks go from aliases to versions, and a withdrawal locks a version: so the aliases that send requests to it, and all
versions that they may go back to, are held before. Once the version is locked nobody begins to use it any more; if
somebody has meanwhile, the withdrawal begins anew.
"""

from uuid import UUID

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import StaleState
from releases.models import Alias, AliasRevision
from releases.selectors import active_releases, lock_active_release, lock_alias, lock_versions
from releases.services.releases.rollback import Undoing, undo_release
from releases.services.splits import end_split


def hold_users(*, version_id: UUID) -> frozenset[int]:
    """Lock the aliases that use the version, and with them all that its withdrawal may touch; returns their keys."""
    held = [alias for key in _users(version_id) if (alias := lock_alias(Alias.objects.filter(pk=key)))]
    for alias in held:
        lock_active_release(alias)
    if held:
        back = AliasRevision.objects.filter(alias__in=held).values_list("version_id", flat=True)
        lock_versions({version_id, *back})
    return frozenset(alias.pk for alias in held)


def end_uses(*, actor: Actor, version_id: UUID, reason: str, held: frozenset[int]) -> None:
    """Roll back the releases to a version that is withdrawn, and end the splits that name it.

    Raises:
        StaleState: another alias than those that are ``held`` uses it by now.

    """
    keys = _users(version_id)
    if not held.issuperset(keys):
        raise StaleState(_("An alias began to use the version meanwhile."))
    undoing = Undoing(actor=actor, reason=reason, asked_at=timezone.now())
    for key in keys:
        alias = lock_alias(Alias.objects.filter(pk=key))
        release = None if alias is None else lock_active_release(alias)
        if release is not None:
            undo_release(release, undoing)
        elif alias is not None:
            end_split(alias, actor=actor, reason=reason)


def _users(version_id: UUID) -> list[int]:
    """The aliases for which the version answers beside their own, or that a release would move to it, in order."""
    split = Q(split__candidate=version_id) | Q(split__shadow=version_id)
    released = Q(pk__in=active_releases().filter(candidate=version_id).values("alias"))
    return list(Alias.objects.filter(split | released).order_by("pk").values_list("pk", flat=True))
