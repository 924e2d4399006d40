"""What a node had no room for: it is asked again after a while, and until then another node may take the version."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from cachecontrol.models import Node, Residency
from cachecontrol.services import wishes
from cachecontrol.services.places import may_answer
from cachecontrol.states import ErrorClass, Observed
from cachecontrol.transitions import note
from registry.actors import Actor
from registry.models import Version

# What a node answers that has no room for the files themselves.
DISK_FULL: Final = "disk_full"
# Where all nodes are full a version would else go round among them without an end.
_GIVEN_UP_FOR: Final = timedelta(seconds=30)
_REASON: Final = "there was no room for it, and another node takes it"


def has_no_room(residency: Residency) -> bool:
    """Whether its node, or the engine there, has refused it for want of room."""
    return residency.observed == Observed.FAILED and residency.error_class == ErrorClass.CAPACITY


def refused_among(held: Iterable[Residency]) -> list[Residency]:
    """Those whose node is there and had no room."""
    return [one for one in held if may_answer(one.node) and has_no_room(one)]


def lock_refused(held: Iterable[Residency]) -> list[Residency]:
    """The same, locked: before the audit log, as whoever reports on them does it."""
    found = (wishes.lock_residency(node=one.node, version_id=one.version_id) for one in refused_among(held))
    return [one for one in found if one is not None and has_no_room(one)]


def give_up(actor: Actor, refused: Iterable[Residency]) -> None:
    """Want the version no more where there was no room. The caller has locked them."""
    for residency in refused:
        change = wishes.release if residency.error_code == DISK_FULL else wishes.demote
        change(actor=actor, residency=residency, reason=_REASON)
        note(residency, given_up_at=timezone.now())


def given_up_lately(version: Version) -> frozenset[int]:
    """The nodes, by primary key, that had no room for it a moment ago: it goes to none of them unless one is named."""
    return frozenset(_given_up().filter(version=version).values_list("node", flat=True))


def given_up_on(nodes: Iterable[Node]) -> Mapping[UUID, frozenset[str]]:
    """The same for a plan: by version the names of those of the nodes that had no room for it a moment ago."""
    names: defaultdict[UUID, set[str]] = defaultdict(set)
    found = _given_up().filter(node__in=[node.pk for node in nodes])
    for version_id, name in found.values_list("version_id", "node__name"):
        names[version_id].add(name)
    return {version_id: frozenset(there) for version_id, there in names.items()}


def _given_up() -> QuerySet[Residency]:
    return Residency.objects.filter(given_up_at__gt=timezone.now() - _GIVEN_UP_FOR).order_by()


def next_try(residency: Residency) -> datetime:
    """When its node is asked again."""
    return residency.retry_at or timezone.now()
