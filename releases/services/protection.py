"""Saying who may move an alias, and whether that takes a release; ``services.guards`` holds to it."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import InvalidInput
from registry.models import Membership
from registry.permissions import ROLES_FOR, Action, require_in_tenant
from releases import events
from releases.models import Alias, AliasProtection
from releases.selectors import lock_alias

MOST_MOVERS: Final = 100


@transaction.atomic
def protect_alias(
    *,
    actor: Actor,
    alias: Alias,
    movers: Iterable[str] = (),
    needs_release: bool = True,
    unchanged: Callable[[AliasProtection | None], None] = lambda _protection: None,
) -> AliasProtection:
    """Protect the alias from now on, in place of any protection it has. Quiet when it is protected so already.

    ``movers`` are e-mails of the people who alone may move, split and release it, empty: everybody whose role allows
    it; ``needs_release``: nothing but a promoted release moves it, or a rollback. A split that it has stays.
    ``unchanged`` is called with the protection there is and raises if it isn't what the caller has seen.

    Raises:
        InvalidInput: somebody of ``movers`` is no member who may move aliases.

    """
    require_in_tenant(actor, Action.PROTECT_ALIAS, alias.tenant_id)
    locked = lock_alias(Alias.objects.filter(pk=alias.pk)) or alias
    found = AliasProtection.objects.filter(alias=locked).first()
    unchanged(found)
    wanted: dict[str, Any] = {"movers": sorted({email.lower() for email in movers}), "needs_release": needs_release}
    before = None if found is None else protection_facts(found)
    if found is not None and before == wanted:
        return found
    _require_members(locked, wanted["movers"])
    kept, _made = AliasProtection.objects.update_or_create(
        alias=locked, defaults={**wanted, "changed_at": timezone.now()}
    )
    events.alias_protected(actor=actor, alias=locked, before=before, after=wanted)
    return kept


@transaction.atomic
def unprotect_alias(
    *,
    actor: Actor,
    alias: Alias,
    unchanged: Callable[[AliasProtection | None], None] = lambda _protection: None,
) -> None:
    """Let everybody whose role allows it move the alias directly again. Quiet when they may already."""
    require_in_tenant(actor, Action.PROTECT_ALIAS, alias.tenant_id)
    locked = lock_alias(Alias.objects.filter(pk=alias.pk)) or alias
    found = AliasProtection.objects.filter(alias=locked).first()
    unchanged(found)
    if found is None:
        return
    before = protection_facts(found)
    found.delete()
    events.alias_protected(actor=actor, alias=locked, before=before, after=None)


def protection_facts(protection: AliasProtection) -> dict[str, Any]:
    """A protection as the audit log tells it."""
    return {"movers": list(protection.movers), "needs_release": protection.needs_release}


def _require_members(alias: Alias, movers: list[str]) -> None:
    if len(movers) > MOST_MOVERS:
        raise InvalidInput(_("At most %(most)d people can be named.") % {"most": MOST_MOVERS}, field="movers")
    roles = [role.value for role in ROLES_FOR[Action.MOVE_ALIAS]]
    able = Membership.objects.filter(tenant=alias.tenant, role__in=roles, person__email__in=movers)
    missing = set(movers) - set(able.values_list("person__email", flat=True))
    if missing:
        raise InvalidInput(
            _("Not a member with a role that may move aliases: %(people)s.") % {"people": ", ".join(sorted(missing))},
            field="movers",
        )
