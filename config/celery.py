"""The Celery application of the workers: queues ``validate``, ``control`` and ``webhooks``, and one beat."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.conf import settings

from config.metrics.tasks import count_tasks

count_tasks()
app = Celery("lorekeeper", broker=settings.BROKER_URL)
app.conf.update(
    accept_content=["json"],
    task_serializer="json",
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_time_limit=1800,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_cancel_long_running_tasks_on_connection_loss=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"visibility_timeout": 3600, "socket_keepalive": True, "health_check_interval": 10},
    imports=["workers.tasks"],
    beat_schedule={
        "sweep": {
            "task": "workers.tasks.sweep",
            "schedule": settings.SWEEP_S,
            # Sweeps that pile up are useless; but the worker's clock may be ahead of the beat's.
            "options": {"queue": "control", "expires": max(settings.SWEEP_S * 5, 60)},
        },
        # It asks the store for a list, which is slow and on some costs money.
        "sweep-store": {
            "task": "workers.tasks.sweep_store",
            "schedule": settings.STORE_SWEEP_S,
            "options": {"queue": "control", "expires": 600},
        },
        "count-requests": {
            "task": "workers.tasks.count_requests",
            "schedule": 2,
            "options": {"queue": "control", "expires": 60},
        },
        # Ends of loads nudge it too: this is for places that come free otherwise, for deadlines, and for lost nudges.
        "serve-load-queues": {
            "task": "workers.tasks.serve_load_queues",
            "schedule": 1,
            "options": {"queue": "control", "expires": 60},
        },
        "plan-pools": {
            "task": "workers.tasks.plan_pools",
            "schedule": 15,
            "options": {"queue": "control", "expires": 60},
        },
        # Verbs nudge it, too: this is for what releases wait for, and for lost nudges.
        "steer-releases": {
            "task": "workers.tasks.steer_releases",
            "schedule": 1,
            "options": {"queue": "control", "expires": 30},
        },
        # Which chains are due for a checkpoint is asked each time, so that a run that failed is soon made up for.
        "keep-audit": {
            "task": "workers.tasks.keep_audit",
            "schedule": 30,
            "options": {"queue": "control", "expires": 60},
        },
        # It looks at the audit log for what has happened, so nobody needs to nudge it for that.
        "deliver-webhooks": {
            "task": "workers.tasks.deliver_webhooks",
            "schedule": 1,
            "options": {"queue": "webhooks", "expires": 30},
        },
    },
)
