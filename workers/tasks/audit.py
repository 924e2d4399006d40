from celery import shared_task

from registry.dispatch import CHECK_AUDIT
from workers.jobs import audit


@shared_task(name="workers.tasks.keep_audit", acks_late=True, time_limit=1800)
def keep_audit() -> None:
    audit.keep_audit()


@shared_task(name=CHECK_AUDIT, acks_late=True, time_limit=300)
def check_audit(check_id: int) -> None:
    """Somebody asked for it; ``keep_audit`` goes on with what was left lying."""
    audit.check_audit(check_id)
