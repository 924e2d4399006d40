"""Which versions releases want to be warm, and which to be cold: reads for cache control."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from releases.models import Alias, Release, Rollback
from releases.selectors import split_targets
from releases.states import ACTIVE_STATES, ReleaseState

# The longest that a plan can have a version kept.
_LONGEST: Final = timedelta(weeks=1)
_UNDER_WAY: Final = sorted(state.value for state in ACTIVE_STATES - {ReleaseState.PENDING})


def kept_warm_versions(*, now: datetime) -> frozenset[UUID]:
    """Both versions of every release that is under way, and for a time the one that a promotion has left.

    Going back must not wait for a load.
    """
    promoted = Q(state=ReleaseState.PROMOTED.value, ended_at__gt=now - _LONGEST)
    found = Release.objects.filter(Q(state__in=_UNDER_WAY) | promoted)
    kept: set[UUID] = set()
    for stable_id, candidate_id, ended_at, minutes in found.values_list(
        "stable_id", "candidate_id", "ended_at", "plan__keep_stable_warm_minutes"
    ):
        if ended_at is None:
            kept.update((stable_id, candidate_id))
        elif now < ended_at + timedelta(minutes=minutes):
            kept.add(stable_id)
    return frozenset(kept)


def left_by_rollback(version_id: str) -> Exists:
    """Whether a rollback has ever left the version in that column of the outer query: only those may be cooled."""
    return Exists(Rollback.objects.filter(left_id=OuterRef(version_id)))


def cooled_versions(*, versions: Iterable[UUID]) -> frozenset[UUID]:
    """Those of the versions that a rollback has left and that no alias, split or release refers to any more."""
    wanted = set(versions)
    left = set(Rollback.objects.filter(left_id__in=wanted).values_list("left_id", flat=True))
    if not left:
        return frozenset()
    used = set(Alias.objects.filter(version_id__in=left).values_list("version_id", flat=True))
    used |= split_targets(versions=left)
    active = Release.objects.filter(state__in=[state.value for state in ACTIVE_STATES], candidate_id__in=left)
    used |= set(active.values_list("candidate_id", flat=True))
    return frozenset(left - used)
