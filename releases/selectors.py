"""Reads. Each takes the actor and sees only what the actor may see, but for those that the system itself needs."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.errors import NotFound
from registry.models import Version
from registry.permissions import Action, require_on_platform
from registry.selectors import get_tenant, versions_with_relations
from registry.states import VersionState
from releases.history import Moved, rollback_target, standing_moves
from releases.models import Alias, AliasRevision, AliasSplit, Release, Rollback
from releases.states import ACTIVE_STATES, MoveKind, ReleaseState

# What of a release names it or shows it, beside its alias.
_WITH_RELEASES: Final = ("stable__adapter__tenant", "candidate__adapter__tenant", "template", "made_by")
_RECENTLY: Final = timedelta(days=1)


def aliases_with_relations() -> QuerySet[Alias]:
    """Aliases with everything that naming them or showing them needs."""
    named = ("tenant", "adapter__tenant", "version__adapter__tenant")
    return Alias.objects.select_related(*named, "split__candidate__adapter", "split__shadow__adapter", "protection")


def splits_with_relations() -> QuerySet[AliasSplit]:
    """Splits with everything that naming them or showing them needs."""
    named = ("alias__tenant", "candidate__adapter__tenant", "shadow__adapter__tenant")
    return AliasSplit.objects.select_related(*named)


def lock_alias(found: QuerySet[Alias]) -> Alias | None:
    """The one alias found, locked until the transaction ends, or None.

    It is locked alone and then read with its relations: a query that waits for the lock while joined to the version
    finds nothing any more when the alias has moved meanwhile.
    """
    key = found.select_for_update(no_key=True).values_list("pk", flat=True).first()
    return None if key is None else aliases_with_relations().get(pk=key)


def lock_versions(keys: set[UUID]) -> dict[UUID, Version]:
    """In the order of their keys, so that two moves don't wait for each other in a circle."""
    versions = versions_with_relations().select_for_update(of=("self",), no_key=True).filter(pk__in=keys)
    return {version.pk: version for version in versions.order_by("pk")}


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


def revisions_of(alias: Alias) -> QuerySet[AliasRevision]:
    """The history of an alias that its caller may see."""
    return AliasRevision.objects.select_related("version__adapter", "previous_version").filter(alias=alias)


def version_ids_by_alias(*, adapter_id: int) -> dict[str, UUID]:
    """The version each alias of the adapter points at now, by alias name."""
    return dict(Alias.objects.filter(adapter_id=adapter_id).values_list("name", "version_id"))


def versions_aliased_since(*, version_ids: Iterable[UUID], since: datetime) -> frozenset[UUID]:
    """Those of the versions that an alias pointed at for some time after ``since``, or does now, with its split.

    What a release that isn't over goes from and to counts as pointed at.
    """
    wanted = set(version_ids)
    later = AliasRevision.objects.filter(at__gt=since)
    found = set(Alias.objects.filter(version_id__in=wanted).values_list("version_id", flat=True))
    found |= split_targets(versions=wanted) | release_targets(versions=wanted)
    found |= set(later.filter(version_id__in=wanted).values_list("version_id", flat=True))
    # What a move took the alias away from stood until that move.
    found |= set(later.filter(previous_version_id__in=wanted).values_list("previous_version_id", flat=True))
    return frozenset(found)


def split_targets(*, versions: Iterable[UUID]) -> frozenset[UUID]:
    """Those of the versions that answer as the candidate or the shadow of an alias."""
    wanted = set(versions)
    splits = AliasSplit.objects.filter(Q(candidate_id__in=wanted) | Q(shadow_id__in=wanted))
    found = {version_id for pair in splits.values_list("candidate_id", "shadow_id") for version_id in pair}
    return frozenset(found & wanted)


def release_targets(*, versions: Iterable[UUID]) -> frozenset[UUID]:
    """Those of the versions that a release which isn't over goes from or to."""
    wanted = set(versions)
    named = active_releases().filter(Q(stable_id__in=wanted) | Q(candidate_id__in=wanted))
    found = {version_id for pair in named.values_list("stable_id", "candidate_id") for version_id in pair}
    return frozenset(found & wanted)


def alias_history(alias_id: int) -> list[Moved]:
    """All moves of an alias, in the order in which they happened."""
    rows = (
        AliasRevision.objects.filter(alias_id=alias_id).order_by("number").values_list("kind", "version_id", "number")
    )
    return [Moved(MoveKind(kind), version_id, number) for kind, version_id, number in rows]


def rollback_targets_of(*, adapter_id: int) -> frozenset[UUID]:
    """The versions that aliases which have pointed at the adapter would go back to."""
    aliases = AliasRevision.objects.filter(version__adapter_id=adapter_id).values_list("alias_id", flat=True).distinct()
    targets = {rollback_target(alias_history(alias_id), lost=lost_versions(alias_id)) for alias_id in aliases}
    return frozenset(target for target in targets if target is not None)


def lost_versions(alias_id: int) -> frozenset[UUID]:
    """The versions in an alias's history that it can't go back to."""
    lost = Q(state=VersionState.REVOKED.value) | Q(purged_at__isnull=False)
    return frozenset(Version.objects.filter(lost, alias_revisions__alias_id=alias_id).values_list("pk", flat=True))


def releases_with_relations() -> QuerySet[Release]:
    """Releases with everything that naming them or showing them needs."""
    return Release.objects.select_related("alias__tenant", "alias__adapter__tenant", *_WITH_RELEASES)


def active_releases() -> QuerySet[Release]:
    """Those that are not over, of all tenants."""
    return releases_with_relations().filter(state__in=[state.value for state in ACTIVE_STATES])


def active_release(alias_id: int) -> Release | None:
    """The release of the alias that isn't over, if there is one."""
    return active_releases().filter(alias_id=alias_id).first()


def get_release(*, actor: Actor, tenant: str, alias: str, number: int, action: Action = Action.VIEW_TENANT) -> Release:
    """Raises ``NotFound`` or ``PermissionDenied``."""
    named = (tenant, alias, number)
    return _named_release(releases_with_relations(), named, actor=actor, action=action)


def find_release(*, actor: Actor, tenant: str, alias: str, number: int, action: Action) -> Release:
    """The release with its alias alone, for a service that locks it and reads the rest then; raises like the other."""
    named = (tenant, alias, number)
    return _named_release(Release.objects.select_related("alias"), named, actor=actor, action=action)


def _named_release(found: QuerySet[Release], named: tuple[str, str, int], *, actor: Actor, action: Action) -> Release:
    tenant, alias, number = named
    owner = get_tenant(actor=actor, name=tenant, action=action)
    release = found.filter(alias__tenant=owner, alias__name=alias, number=number).first()
    if release is None:
        other = get_alias(actor=actor, tenant=tenant, name=alias, action=action)
        raise NotFound(_("%(alias)s has no release %(number)d.") % {"alias": other, "number": number}, field="number")
    return release


def list_releases(*, actor: Actor, tenant: str) -> QuerySet[Release]:
    owner = get_tenant(actor=actor, name=tenant)
    return releases_with_relations().filter(alias__tenant=owner)


def list_stalled(*, actor: Actor) -> QuerySet[Release]:
    """Releases that wait for a person, in the tenants that the actor belongs to, the longest waiting first.

    They are paused, or ended without being promoted within the last day.
    """
    require_on_platform(actor, Action.VIEW_PLATFORM)
    failed = Q(state__in=[ReleaseState.ABORTED.value, ReleaseState.ROLLED_BACK.value])
    recent = Q(ended_at__gt=timezone.now() - _RECENTLY)
    found = releases_with_relations().filter(Q(state=ReleaseState.PAUSED.value) | (failed & recent))
    return found.filter(alias__tenant__in=list(actor.roles)).order_by("made_at", "pk")


def list_rollbacks(*, actor: Actor, tenant: str, alias: str) -> QuerySet[Rollback]:
    """The rollbacks of an alias, with how long each took."""
    return rollbacks_of(get_alias(actor=actor, tenant=tenant, name=alias))


def rollbacks_of(alias: Alias) -> QuerySet[Rollback]:
    """The rollbacks of an alias that its caller may see."""
    named = ("alias__tenant", "release", "left__adapter__tenant")
    return Rollback.objects.select_related(*named).filter(alias=alias)


def lock_release(release_id: UUID) -> Release:
    """The release, locked until the transaction ends together with its alias, which is locked first.

    Whatever changes an alias or a release takes its locks in one order: aliases, releases, versions, records.
    """
    alias = lock_alias(Alias.objects.filter(pk__in=Release.objects.filter(pk=release_id).values("alias")))
    if alias is None:
        raise NotFound(_("There is no such release."))
    _lock_rows(Release.objects.filter(pk=release_id))
    return _locked(release_id, alias)


def lock_active_release(alias: Alias) -> Release | None:
    """The release of a locked alias that isn't over, locked, too."""
    return _lock_release_of(alias, active_releases())


def lock_promoted_release(alias: Alias, history: Iterable[Moved]) -> Release | None:
    """The release that brought a locked alias to where it points, locked, too; None if it was moved there by hand."""
    standing = standing_moves(history)[-1]
    promoted = Release.objects.filter(state=ReleaseState.PROMOTED.value, stable_revision=standing.revision - 1)
    return _lock_release_of(alias, promoted)


def _lock_release_of(alias: Alias, found: QuerySet[Release]) -> Release | None:
    keys = _lock_rows(found.filter(alias=alias).order_by("-number"))
    if not keys:
        return None
    return _locked(keys[0], alias)


def _locked(release_id: UUID, alias: Alias) -> Release:
    release = Release.objects.select_related(*_WITH_RELEASES).get(pk=release_id)
    release.alias = alias
    return release


def _lock_rows(found: QuerySet[Release]) -> list[UUID]:
    return list(found.select_for_update(of=("self",), no_key=True).values_list("pk", flat=True)[:1])
