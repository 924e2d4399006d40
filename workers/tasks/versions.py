from uuid import UUID

from celery import shared_task

from registry.services.validation import purge_version
from registry.stores.errors import StoreUnavailable
from workers.jobs.validation import revalidate_version, validate_version


@shared_task(
    name="workers.tasks.validate_version",
    acks_late=True,
    time_limit=1800,
    autoretry_for=(StoreUnavailable,),
    retry_backoff=True,
    retry_backoff_max=60,
    max_retries=8,
)
def validate(version_id: str) -> None:
    validate_version(version_id=UUID(version_id))


@shared_task(
    name="workers.tasks.revalidate_version",
    acks_late=True,
    time_limit=1800,
    autoretry_for=(StoreUnavailable,),
    retry_backoff=True,
    retry_backoff_max=60,
    max_retries=8,
)
def revalidate(revalidation_id: int) -> None:
    revalidate_version(revalidation_id=revalidation_id)


@shared_task(
    name="workers.tasks.purge_version",
    acks_late=True,
    time_limit=120,
    autoretry_for=(StoreUnavailable,),
    retry_backoff=True,
    retry_backoff_max=60,
    max_retries=8,
)
def purge(version_id: str) -> None:
    purge_version(version_id=UUID(version_id))
