from uuid import UUID

from celery import shared_task

from registry.dispatch import STEER_RELEASE
from workers.jobs.releases import steer_all, steer_onwards


@shared_task(name="workers.tasks.steer_releases", acks_late=True, time_limit=60)
def steer_releases() -> None:
    steer_all()


@shared_task(name=STEER_RELEASE, acks_late=True, time_limit=60)
def steer_release(release_id: str) -> None:
    """A verb has let something happen; ``steer_releases`` does it too, only later."""
    steer_onwards(UUID(release_id))
