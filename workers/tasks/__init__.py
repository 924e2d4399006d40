"""Every task, by import: Celery knows a task once its module is loaded."""

from workers.tasks import audit, reconcile, sweep, versions

__all__ = ["audit", "reconcile", "sweep", "versions"]
