"""Answers to requests that may come again: each is given once more instead of doing the work twice.

A key is held by an advisory lock of the database connection while its request runs. So nothing is left behind by a
process that is killed: the lock ends with its connection.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext as _

from registry.errors import KeyReused, RequestRunning
from registry.models import IdempotentAnswer

KEPT_FOR: Final = timedelta(hours=24)
# How many a sweep forgets; the rest are left to the next one.
_MAX_SWEPT: Final = 1000


@contextmanager
def only_request_with(*, owner: str, key: str) -> Iterator[None]:
    """Hold the key for as long as one request runs. Raises ``RequestRunning`` when another one holds it."""
    number = int.from_bytes(hashlib.sha256(f"idempotency:{owner}:{key}".encode()).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [number])
        if not cursor.fetchone()[0]:
            raise RequestRunning(
                _("The first request with this Idempotency-Key is still running. Try again."), field="Idempotency-Key"
            )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [number])


def find_answer(*, owner: str, key: str, fingerprint: str) -> bytes | None:
    """The sealed answer that the same request got before, or None; one that is over a day old is forgotten.

    Raises ``KeyReused`` when it was another request.
    """
    kept = IdempotentAnswer.objects.filter(owner=owner, key=key).first()
    if kept is None:
        return None
    if kept.created_at <= timezone.now() - KEPT_FOR:
        kept.delete()
        return None
    if kept.fingerprint != fingerprint:
        raise KeyReused(
            _("This Idempotency-Key was used for another request. Make a new key for each request."),
            field="Idempotency-Key",
        )
    return bytes(kept.sealed)


def keep_answer(*, owner: str, key: str, fingerprint: str, sealed: bytes) -> None:
    """Keep the answer of a request for which ``find_answer`` found none, for a day."""
    IdempotentAnswer.objects.create(
        owner=owner, key=key, fingerprint=fingerprint, sealed=sealed, created_at=timezone.now()
    )


def forget_old_answers() -> int:
    """Delete answers older than a day; returns how many."""
    old = IdempotentAnswer.objects.filter(created_at__lte=timezone.now() - KEPT_FOR).order_by("created_at")
    oldest = list(old.values_list("pk", flat=True)[:_MAX_SWEPT])
    gone, _by_model = IdempotentAnswer.objects.filter(pk__in=oldest).delete()
    return gone
