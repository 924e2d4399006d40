"""Every task, by import: Celery knows a task once its module is loaded."""

from workers.tasks import audit, cache, reconcile, releases, sweep, versions, webhooks

__all__ = ["audit", "cache", "reconcile", "releases", "sweep", "versions", "webhooks"]
