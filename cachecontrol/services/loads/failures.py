"""What failed to load for good is not placed again at once: each such load taints a node, and its engine is restarted.

An operator's own request to warm a version tries at once.
"""

from datetime import timedelta
from typing import Final

from django.db.models import F
from django.utils import timezone

from cachecontrol.models import LoadFailure
from registry.models import Version

# After the first failure, the second …; the last one holds for all that follow.
_PAUSES: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 25, 60))


def note_failure(version: Version, message: str) -> None:
    """Remember that it failed for good once more. The caller has locked the residency."""
    now = timezone.now()
    _failure, is_first = LoadFailure.objects.get_or_create(
        version=version, defaults={"last_at": now, "message": message}
    )
    if not is_first:
        known = LoadFailure.objects.filter(version=version)
        known.update(failures=F("failures") + 1, last_at=now, message=message)


def forget_failures(version: Version) -> None:
    """It was loaded after all."""
    LoadFailure.objects.filter(version=version).delete()


def pause_of(failure: LoadFailure) -> timedelta:
    """How long the version is not placed yet; zero or less: it may be tried again."""
    return failure.last_at + _PAUSES[min(failure.failures, len(_PAUSES)) - 1] - timezone.now()


def is_paused(version: Version) -> bool:
    failure = LoadFailure.objects.filter(version=version).first()
    return failure is not None and pause_of(failure) > timedelta()
