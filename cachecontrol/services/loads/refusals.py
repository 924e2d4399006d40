"""What a node had no room for: it is asked again after a while, and until then another node may take the version."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from cachecontrol.models import Residency
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
    """The nodes, by primary key, that had no room for it a moment ago: to none of them it goes from another refusal."""
    since = timezone.now() - _GIVEN_UP_FOR
    return frozenset(
        Residency.objects.filter(version=version, given_up_at__gt=since).order_by().values_list("node", flat=True)
    )


def next_try(residency: Residency) -> datetime:
    """When its node is asked again."""
    return residency.retry_at or timezone.now()
