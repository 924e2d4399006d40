from celery import shared_task

from registry.services.transfers.parts import remove_abandoned_bytes
from workers.sweeps import sweep_all


@shared_task(name="workers.tasks.sweep", acks_late=True, time_limit=120)
def sweep() -> None:
    sweep_all()


@shared_task(name="workers.tasks.sweep_store", acks_late=True, time_limit=600)
def sweep_store() -> None:
    remove_abandoned_bytes()
