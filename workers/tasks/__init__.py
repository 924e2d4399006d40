"""Every task, by import: Celery knows a task once its module is loaded."""

from workers.tasks import reconcile, sweep, versions

__all__ = ["reconcile", "sweep", "versions"]
