"""Reads. Each takes the actor and sees only what the actor may see, but for those that the system itself needs."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import NotFound
from registry.models import Version
from registry.permissions import Action
from registry.selectors import get_tenant
from registry.states import VersionState
from releases.history import Moved, rollback_target
from releases.models import Alias, AliasRevision
from releases.states import MoveKind


def aliases_with_relations() -> QuerySet[Alias]:
    """Aliases with everything that naming them or showing them needs."""
    return Alias.objects.select_related("tenant", "adapter__tenant", "version__adapter__tenant")


def lock_alias(found: QuerySet[Alias]) -> Alias | None:
    """The one alias found, locked until the transaction ends, or None.

    It is locked alone and then read with its relations: a query that waits for the lock while joined to the version
    finds nothing any more when the alias has moved meanwhile.
    """
    key = found.select_for_update(no_key=True).values_list("pk", flat=True).first()
    return None if key is None else aliases_with_relations().get(pk=key)


def get_alias(*, actor: Actor, tenant: str, name: str, action: Action = Action.VIEW_TENANT) -> Alias:
    owner = get_tenant(actor=actor, name=tenant, action=action)
    alias = aliases_with_relations().filter(tenant=owner, name=name).first()
    if alias is None:
        raise NotFound(
            _("Tenant %(tenant)s has no alias named %(name)s.") % {"tenant": tenant, "name": name}, field="alias"
        )
    return alias


def list_aliases(*, actor: Actor, tenant: str) -> QuerySet[Alias]:
    owner = get_tenant(actor=actor, name=tenant)
    return aliases_with_relations().filter(tenant=owner).order_by("name")


def list_alias_history(*, actor: Actor, tenant: str, name: str) -> QuerySet[AliasRevision]:
    alias = get_alias(actor=actor, tenant=tenant, name=name)
    return AliasRevision.objects.select_related("version__adapter", "previous_version").filter(alias=alias)


def version_ids_by_alias(*, adapter_id: int) -> dict[str, UUID]:
    """The version each alias of the adapter points at now, by alias name."""
    return dict(Alias.objects.filter(adapter_id=adapter_id).values_list("name", "version_id"))


def versions_aliased_since(*, version_ids: Iterable[UUID], since: datetime) -> frozenset[UUID]:
    """Those of the versions that an alias pointed at for some time after ``since``, or does now."""
    wanted = set(version_ids)
    later = AliasRevision.objects.filter(at__gt=since)
    found = set(Alias.objects.filter(version_id__in=wanted).values_list("version_id", flat=True))
    found |= set(later.filter(version_id__in=wanted).values_list("version_id", flat=True))
    # What a move took the alias away from stood until that move.
    found |= set(later.filter(previous_version_id__in=wanted).values_list("previous_version_id", flat=True))
    return frozenset(found)


def alias_history(alias_id: int) -> list[Moved]:
    """All moves of an alias, in the order in which they happened."""
    rows = AliasRevision.objects.filter(alias_id=alias_id).order_by("number").values_list("kind", "version_id")
    return [Moved(kind=MoveKind(kind), version_id=version_id) for kind, version_id in rows]


def rollback_targets_of(*, adapter_id: int) -> frozenset[UUID]:
    """The versions that aliases which have pointed at the adapter would go back to."""
    aliases = AliasRevision.objects.filter(version__adapter_id=adapter_id).values_list("alias_id", flat=True).distinct()
    targets = {rollback_target(alias_history(alias_id), lost=_lost_versions(alias_id)) for alias_id in aliases}
    return frozenset(target for target in targets if target is not None)


def _lost_versions(alias_id: int) -> frozenset[UUID]:
    """The versions in an alias's history that it can't go back to."""
    lost = Q(state=VersionState.REVOKED.value) | Q(purged_at__isnull=False)
    return frozenset(Version.objects.filter(lost, alias_revisions__alias_id=alias_id).values_list("pk", flat=True))
