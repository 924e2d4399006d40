"""What the processes of web and the workers count of themselves. Several that share a folder are added up.

The folder has to be known before the first metric is made: a metric's values live there or in this process's memory.
"""

import os
from pathlib import Path
from typing import Final

from django.conf import settings
from prometheus_client import CollectorRegistry, Counter, Histogram, multiprocess, values

from config.metrics.slots import ProcessSlot

_HTTP_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0)
_TASK_BUCKETS: Final = (0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0)


def _use_folder(folder: Path) -> None:
    """Have every metric from now on count in files of this folder."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    values.ValueClass = values.MultiProcessValue(ProcessSlot(folder))  # type: ignore[no-untyped-call]


if settings.METRICS_FOLDER is not None:
    _use_folder(settings.METRICS_FOLDER)

_OWN: Final = CollectorRegistry()

HTTP_REQUESTS: Final = Counter(
    "lorekeeper_http_requests",
    "HTTP requests answered, by method, address pattern and class of status.",
    ["method", "route", "status"],
    registry=_OWN,
)
HTTP_SECONDS: Final = Histogram(
    "lorekeeper_http_request_seconds",
    "Time until the answer to an HTTP request began.",
    ["route"],
    buckets=_HTTP_BUCKETS,
    registry=_OWN,
)
TASKS: Final = Counter(
    "lorekeeper_tasks", "Tasks ended, by how (success, failure, retry, …).", ["task", "state"], registry=_OWN
)
TASK_SECONDS: Final = Histogram(
    "lorekeeper_task_seconds", "Run time of tasks.", ["task"], buckets=_TASK_BUCKETS, registry=_OWN
)


def process_registry() -> CollectorRegistry:
    """A registry that collects what all processes counted that share this one's folder."""
    registry = CollectorRegistry()
    if settings.METRICS_FOLDER is None:
        registry.register(_OWN)
    else:
        multiprocess.MultiProcessCollector(registry, path=str(settings.METRICS_FOLDER))  # type: ignore[no-untyped-call]
    return registry
