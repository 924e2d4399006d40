"""Who uses versions, as the registry asks: the aliases that point at them, splits, and releases that aren't over."""

from collections.abc import Iterable, Iterator
from typing import Final
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.contrib.postgres.fields import ArrayField
from django.db.models import CharField, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from registry.ports import PointedAlias, Use
from releases.models import Alias, AliasSplit
from releases.models.splits import WHOLE
from releases.selectors import active_releases

_NOBODY: Final = Value([], output_field=ArrayField(CharField()))


def aliases_of_adapters(*, adapter_ids: Iterable[int]) -> tuple[PointedAlias, ...]:
    """The aliases that point at versions of these adapters now, by name."""
    found = _with_callers(Alias.objects.filter(adapter_id__in=list(adapter_ids)))
    return tuple(
        PointedAlias(
            name=alias.name,
            adapter_id=alias.adapter_id,
            version_id=alias.version_id,
            version=alias.version.name,
            revision=alias.revision,
            moved_at=alias.updated_at,
            shared_with=_callers(alias),
        )
        for alias in found.select_related("version")
    )


def uses_of_version(*, version_id: UUID) -> tuple[Use, ...]:
    """What aliases do with the version now: first those that point at it, then splits, then releases."""
    pointing = _with_callers(Alias.objects.filter(version_id=version_id))
    aliases = (Use(kind="alias", alias=each.name, shared_with=_callers(each)) for each in pointing)
    return (*aliases, *_in_splits(version_id), *_in_releases(version_id))


def _in_splits(version_id: UUID) -> Iterator[Use]:
    splits = AliasSplit.objects.select_related("alias").filter(Q(candidate=version_id) | Q(shadow=version_id))
    for split in splits.order_by("alias__name"):
        if split.candidate_id == version_id:
            yield Use(kind="canary", alias=split.alias.name, percent=split.basis_points * 100 / WHOLE)
        if split.shadow_id == version_id:
            yield Use(kind="shadow", alias=split.alias.name, percent=split.shadow_basis_points * 100 / WHOLE)


def _in_releases(version_id: UUID) -> Iterator[Use]:
    named = active_releases().filter(Q(stable=version_id) | Q(candidate=version_id))
    for release in named.order_by("alias__name"):
        yield Use(
            kind="candidate" if release.candidate_id == version_id else "stable",
            alias=release.alias.name,
            release=release.number,
            state=release.state,
        )


def _with_callers(aliases: QuerySet[Alias]) -> QuerySet[Alias]:
    names = ArrayAgg("grants__tenant__name", filter=Q(grants__isnull=False), order_by="grants__tenant__name")
    return aliases.annotate(callers=Coalesce(names, _NOBODY)).order_by("name")


def _callers(alias: Alias) -> tuple[str, ...]:
    return tuple(vars(alias)["callers"])
