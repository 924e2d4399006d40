"""What is still in progress on a page after the change itself is over."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.utils import timezone

from releases.models import Rollback

# For so long after a rollback the last answers of what was left are worth waiting for on the page.
_WATCHED_FOR: Final = timedelta(minutes=2)


def is_watched(rollbacks: Iterable[Rollback]) -> bool:
    """Whether one of the rollbacks was made just now, so that its last answer may still be told."""
    since = timezone.now() - _WATCHED_FOR
    return any(rollback.settled_at is None and rollback.committed_at > since for rollback in rollbacks)
