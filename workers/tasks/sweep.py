from celery import shared_task

from workers.sweeps import sweep_all


@shared_task(name="workers.tasks.sweep", acks_late=True, time_limit=120)
def sweep() -> None:
    sweep_all()
