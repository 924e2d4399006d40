"""How long rollbacks took: when a version that was left gave its last answer, as far as gateways have recorded it."""

from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from registry.actors import system_actor
from releases.models import AliasRevision, Release, Rollback
from releases.ports import PORTS, Departure

# In this time the longest answers have ended and their records are written.
SETTLES_AFTER: Final = timedelta(minutes=15)
# What was lost between a commit and the cooling is made up for.
_COOLS_FOR: Final = timedelta(minutes=1)
_MOST: Final = 100


def settle_departures() -> int:
    """Look again at the rollbacks that aren't settled, the oldest first; how many were looked at."""
    _cool_again(timezone.now())
    open_ones = (
        Rollback.objects.filter(settled_at__isnull=True).select_related("alias").order_by("committed_at")[:_MOST]
    )
    for rollback in open_ones:
        _look(rollback, timezone.now())
    return len(open_ones)


def _cool_again(now: datetime) -> None:
    """All of the last minute, however many older ones are looked at: what they left does harm meanwhile."""
    young = Rollback.objects.filter(settled_at__isnull=True, committed_at__gt=now - _COOLS_FOR).order_by("committed_at")
    actor, reason = system_actor("releases"), "it was rolled back"
    for version_id in young.values_list("left_id", flat=True):
        PORTS.cool(actor=actor, version_id=version_id, reason=reason)


def _look(rollback: Rollback, now: datetime) -> None:
    until = min(rollback.committed_at + SETTLES_AFTER, _came_back(rollback) or now)
    found = PORTS.last_answers(
        Departure(
            alias_id=rollback.alias_id,
            version_id=rollback.left_id,
            asked_at=rollback.asked_at,
            committed_at=rollback.committed_at,
            until=until,
        )
    )
    facts = {
        "last_answer_at": found.last_at,
        "strays": found.strays,
        "settled_at": now if now >= rollback.committed_at + SETTLES_AFTER else None,
    }
    if any(getattr(rollback, name) != value for name, value in facts.items()):
        Rollback.objects.filter(pk=rollback.pk, settled_at__isnull=True).update(**facts)


def _came_back(rollback: Rollback) -> datetime | None:
    """When the alias, or a release of it, had to do with the version again."""
    moved = AliasRevision.objects.filter(alias=rollback.alias, version=rollback.left, number__gt=rollback.revision)
    released = Release.objects.filter(
        alias=rollback.alias, candidate=rollback.left, started_at__gt=rollback.committed_at
    )
    times = (
        moved.order_by("number").values_list("at", flat=True).first(),
        released.order_by("started_at").values_list("started_at", flat=True).first(),
    )
    return min((at for at in times if at is not None), default=None)
