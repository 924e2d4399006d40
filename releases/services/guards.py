"""What keeps an alias from being changed by hand: a release that is under way, and the alias's protection."""

from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import PermissionDenied
from releases.errors import ReleaseActive, ReleaseNeeded
from releases.models import Alias, AliasProtection
from releases.selectors import active_release


def require_no_release(alias: Alias) -> None:
    """Raise ``ReleaseActive`` while a release of the alias is under way. The caller has locked the alias."""
    release = active_release(alias.pk)
    if release is not None:
        raise ReleaseActive(
            _(
                "%(release)s to %(candidate)s is %(state)s and changes this alias until it is over. "
                "Promote it, abort it or roll it back first."
            )
            % {"release": release, "candidate": release.candidate, "state": release.state}
        )


def require_mover(alias: Alias, actor: Actor) -> None:
    """Raise ``PermissionDenied`` unless the alias's protection lets the actor change where it points."""
    protection = _protection(alias)
    if protection is None or not protection.movers or actor.kind == "system" or actor.id in protection.movers:
        return
    raise PermissionDenied(
        _("%(alias)s is protected. Only these people may move, split or release it: %(people)s.")
        % {"alias": alias, "people": ", ".join(sorted(protection.movers))},
        tenant_id=alias.tenant_id,
    )


def require_by_hand(alias: Alias) -> None:
    """Raise ``ReleaseNeeded`` if the alias's protection has it moved by releases and rollbacks alone."""
    protection = _protection(alias)
    if protection is not None and protection.needs_release:
        raise ReleaseNeeded(
            _("%(alias)s is protected: it is moved by releases alone. Make one: lorekeeper release make.")
            % {"alias": alias}
        )


def _protection(alias: Alias) -> AliasProtection | None:
    return AliasProtection.objects.filter(alias=alias).first()
