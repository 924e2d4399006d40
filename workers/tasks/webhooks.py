from celery import shared_task

from registry.dispatch import DELIVER_WEBHOOKS
from workers.jobs import webhooks


@shared_task(name=DELIVER_WEBHOOKS, acks_late=True, time_limit=120)
def deliver_webhooks() -> None:
    webhooks.deliver_webhooks()
