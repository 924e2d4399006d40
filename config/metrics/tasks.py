"""The workers' metrics: every task is counted where it runs, and the worker's parent answers ``/metrics``."""

import logging
import time
from functools import partial
from typing import Any, Final

from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import signals
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from config.metrics.fleet import make_registry
from config.metrics.process import TASK_SECONDS, TASKS
from workers.exposition import Address, parse_address, serve

_log = logging.getLogger(__name__)

# By the task's id; a pool's process runs one at a time.
_begun: Final[dict[str, float]] = {}


def count_tasks() -> None:
    """Count from now on, and answer where the settings say once the worker is ready."""
    signals.task_prerun.connect(_begin, weak=False)
    signals.task_postrun.connect(_end, weak=False)
    signals.task_failure.connect(_killed, weak=False)
    if settings.METRICS_ADDRESS:
        signals.worker_ready.connect(partial(_answer, _address(settings.METRICS_ADDRESS)), weak=False)


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"LOREKEEPER_METRICS {error}") from error


def _begin(task_id: str, **_facts: Any) -> None:  # noqa: ANN401  Celery's
    _begun[task_id] = time.perf_counter()


def _end(task_id: str, task: Any, state: str | None = None, **_facts: Any) -> None:  # noqa: ANN401  Celery's
    begun = _begun.pop(task_id, None)
    TASKS.labels(task.name, (state or "unknown").lower()).inc()
    if begun is not None:
        TASK_SECONDS.labels(task.name).observe(time.perf_counter() - begun)


def _killed(sender: Any, exception: BaseException, **_facts: Any) -> None:  # noqa: ANN401  Celery's
    """The process that ran it is gone, so that the worker's parent speaks for it."""
    if isinstance(exception, TimeLimitExceeded | WorkerLostError):
        TASKS.labels(sender.name, "killed").inc()


def _answer(address: Address, **_facts: Any) -> None:  # noqa: ANN401  Celery's
    """A worker whose address is taken works on without metrics."""
    try:
        serve(address, make_registry(closes=True))
    except OSError:
        _log.exception("no metrics: LOREKEEPER_METRICS can't be listened on")
