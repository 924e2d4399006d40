"""Splitting an alias's requests: a share for a candidate, a share mirrored to a shadow."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import InvalidInput
from registry.models import Version
from registry.naming import check_name
from registry.permissions import Action, require_in_tenant
from releases import events
from releases.models import Alias, AliasSplit
from releases.models.splits import WHOLE
from releases.ports import PORTS
from releases.selectors import aliases_with_relations, lock_alias, lock_versions, splits_with_relations
from releases.services.guards import require_by_hand, require_mover, require_no_release
from releases.services.names import require_name
from releases.services.revisions import require_revision
from releases.services.targets import require_candidate

MOST_NAMES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitWish:
    """Who gets the candidate: ``basis_points`` of the keys (10,000: all), the tenants in ``allow``, none in ``deny``.

    ``shadow_basis_points`` of the requests are mirrored to ``shadow``. ``salt`` decides which keys are in; None keeps
    the one there is for the same candidate, or makes a new one.
    """

    candidate: Version
    basis_points: int = 0
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    shadow: Version | None = None
    shadow_basis_points: int = 0
    salt: str | None = None


@transaction.atomic
def set_split(
    *,
    actor: Actor,
    alias: Alias,
    wish: SplitWish,
    expected_revision: int | None = None,
    reason: str = "",
    unchanged: Callable[[Alias], None] = lambda _alias: None,
) -> AliasSplit:
    """Split the alias's requests as wished, in place of any split it has. Quiet when it is split so already.

    With ``expected_revision`` only while the alias is at that revision; ``unchanged`` is called with the locked alias
    and raises if it isn't what the caller has seen. The alias's next move ends the split.

    Raises:
        InvalidInput: a share isn't between 0 and 10,000, or a tenant's name is none.
        TargetNotServable: candidate or shadow isn't another approved version of the alias's tenant and base model, or
            the alias is the default of another adapter.
        RevisionChanged: the alias is at another revision than expected.
        ReleaseActive: a release of the alias is under way.
        ReleaseNeeded: the alias is moved by releases alone.

    """
    require_in_tenant(actor, Action.MOVE_ALIAS, alias.tenant_id)
    _check(wish)
    locked = lock_alias(Alias.objects.filter(pk=alias.pk)) or alias
    require_mover(locked, actor)
    unchanged(locked)
    require_revision(locked, expected_revision)
    require_no_release(locked)
    require_by_hand(locked)
    return write_split(locked, actor=actor, wish=wish, reason=reason)


def write_split(alias: Alias, *, actor: Actor, wish: SplitWish, reason: str) -> AliasSplit:
    """Split an alias that the caller has locked and may split, as ``set_split`` does."""
    _require_targets(alias, wish)
    before = splits_with_relations().filter(alias=alias).first()
    facts = _facts(wish, before)
    if before is not None and all(getattr(before, name) == value for name, value in facts.items()):
        return before
    was = None if before is None else events.split_facts(before)
    split, _made = AliasSplit.objects.update_or_create(alias=alias, defaults={**facts, "changed_at": timezone.now()})
    events.split_set(actor=actor, split=split, before=was, reason=reason)
    transaction.on_commit(lambda: _prewarm(actor, split), robust=True)
    return split


@transaction.atomic
def clear_split(
    *, actor: Actor, alias: Alias, reason: str = "", unchanged: Callable[[Alias], None] = lambda _alias: None
) -> Alias:
    """Let the alias's own version answer everything again. Quiet when it does already.

    Raises:
        ReleaseActive: a release of the alias is under way.

    """
    require_in_tenant(actor, Action.MOVE_ALIAS, alias.tenant_id)
    locked = lock_alias(Alias.objects.filter(pk=alias.pk)) or alias
    require_mover(locked, actor)
    unchanged(locked)
    require_no_release(locked)
    return end_split(locked, actor=actor, reason=reason)


def end_split(alias: Alias, *, actor: Actor, reason: str) -> Alias:
    """Take the split off an alias that the caller has locked; returns it as it is without."""
    split = splits_with_relations().filter(alias=alias).first()
    if split is None:
        return alias
    before = events.split_facts(split)
    split.delete()
    events.split_cleared(actor=actor, alias=alias, before=before, reason=reason)
    # What was read of the alias with its split says so still.
    return aliases_with_relations().get(pk=alias.pk)


def _prewarm(actor: Actor, split: AliasSplit) -> None:
    for version_id in (split.candidate_id, split.shadow_id):
        if version_id is not None:
            PORTS.prewarm(actor=actor, version_id=version_id)


def _check(wish: SplitWish) -> None:
    for field in ("basis_points", "shadow_basis_points"):
        if not 0 <= getattr(wish, field) <= WHOLE:
            raise InvalidInput(_("A share is a whole number from 0 to 10,000 basis points."), field=field)
    if wish.shadow is None and wish.shadow_basis_points:
        raise InvalidInput(_("A share of shadow requests takes a shadow version."), field="shadow")
    for field in ("allow", "deny"):
        names = getattr(wish, field)
        if len(names) > MOST_NAMES:
            raise InvalidInput(_("At most %(most)d tenants can be named.") % {"most": MOST_NAMES}, field=field)
        for name in names:
            check_name(name, field=field)


def _require_targets(alias: Alias, wish: SplitWish) -> None:
    """Lock candidate and shadow, so that they can't be withdrawn meanwhile, and refuse what may not answer."""
    wanted = {"candidate": wish.candidate} | ({"shadow": wish.shadow} if wish.shadow else {})
    locked = lock_versions({version.pk for version in wanted.values()})
    for field, version in wanted.items():
        found = locked[version.pk]
        require_candidate(alias, found, field=field)
        require_name(alias.name, tenant=alias.tenant, adapter=found.adapter, alias=alias, field=field)


def _facts(wish: SplitWish, before: AliasSplit | None) -> dict[str, Any]:
    is_same = before is not None and before.candidate_id == wish.candidate.pk
    kept = before.salt if before is not None and is_same else secrets.token_hex(8)
    return {
        "candidate": wish.candidate,
        "basis_points": wish.basis_points,
        "salt": wish.salt or kept,
        "allow": sorted(set(wish.allow)),
        "deny": sorted(set(wish.deny)),
        "shadow": wish.shadow,
        "shadow_basis_points": wish.shadow_basis_points,
    }
