"""Bringing what nodes hold in step with what is wanted."""

from uuid import UUID

from celery import shared_task

from cachecontrol.services import reconcile
from registry.dispatch import RECONCILE_VERSION
from registry.errors import StaleState


@shared_task(
    name=RECONCILE_VERSION, acks_late=True, time_limit=60, autoretry_for=(StaleState,), max_retries=3, retry_backoff=1
)
def reconcile_version(version_id: str) -> None:
    """Do now what a change of this version asks for; the sweep does it too, only later."""
    reconcile.reconcile_version(version_id=UUID(version_id))
