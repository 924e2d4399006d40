from celery import shared_task

from workers.jobs import audit


@shared_task(name="workers.tasks.keep_audit", acks_late=True, time_limit=1800)
def keep_audit() -> None:
    audit.keep_audit()
