"""Which versions may not leave: those that a policy pins, or wants warm at some hours, and those of releases."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from cachecontrol.policy.document import PolicyDocument
from cachecontrol.policy.tenants import ScheduledPrewarm
from registry.models import Version
from releases.models import Alias
from releases.warmth import kept_warm_versions


def pinned_versions(document: PolicyDocument) -> frozenset[UUID]:
    """What the pins of the document stand for now; those that stand for nothing are left out."""
    by_alias = [
        Q(tenant__name=pin.tenant, adapter__name=pin.adapter, name=pin.alias) for pin in document.pins if pin.alias
    ]
    by_name = [
        Q(adapter__tenant__name=pin.tenant, adapter__name=pin.adapter, name=pin.version)
        for pin in document.pins
        if pin.version
    ]
    found: set[UUID] = set()
    if by_alias:
        found.update(Alias.objects.filter(reduce(or_, by_alias)).values_list("version_id", flat=True))
    if by_name:
        found.update(Version.objects.filter(reduce(or_, by_name)).values_list("pk", flat=True))
    return frozenset(found)


def staying_versions(document: PolicyDocument) -> frozenset[UUID]:
    """What may not be made to leave now: the pins of the document, and what releases would go to or back to."""
    return pinned_versions(document) | kept_warm_versions(now=timezone.now())


def scheduled_versions(entries: Iterable[ScheduledPrewarm]) -> frozenset[UUID]:
    """What the entries of a schedule stand for now."""
    named = [Q(tenant__name=entry.tenant, adapter__name=entry.adapter, name=entry.alias) for entry in entries]
    if not named:
        return frozenset()
    return frozenset(Alias.objects.filter(reduce(or_, named)).values_list("version_id", flat=True))
