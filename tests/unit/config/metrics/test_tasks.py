from collections.abc import Iterator
from typing import Any

import pytest
from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import Celery, signals
from django.core.exceptions import ImproperlyConfigured

from config.metrics import tasks
from config.metrics.process import TASK_SECONDS, TASKS

USED: tuple[Any, ...] = (
    signals.task_prerun,
    signals.task_postrun,
    signals.task_failure,
    signals.worker_ready,
)


@pytest.fixture
def app(settings: Any) -> Iterator[Celery]:
    """An application whose tasks run here; nobody else hears Celery's signals afterwards."""
    settings.METRICS_ADDRESS = ""
    before = [list(signal.receivers or ()) for signal in USED]
    tasks.count_tasks()
    TASKS.clear()
    TASK_SECONDS.clear()
    with Celery("test", set_as_current=False) as made:
        yield made
    for signal, receivers in zip(USED, before, strict=True):
        signal.receivers = receivers
        signal.sender_receivers_cache.clear()


def counts() -> dict[tuple[str, str], float]:
    (family,) = TASKS.collect()
    return {
        (sample.labels["task"], sample.labels["state"]): sample.value
        for sample in family.samples
        if sample.name == "lorekeeper_tasks_total"
    }


def test_a_task_counts_by_its_name_and_how_it_ended(app: Celery) -> None:
    @app.task(name="fine", shared=False)
    def fine(secret: str) -> str:
        return secret

    @app.task(name="wrong", shared=False)
    def wrong() -> None:
        raise ValueError("secret")

    for _ in range(2):
        fine.apply(kwargs={"secret": "s"})
    wrong.apply()
    assert counts() == {("fine", "success"): 2, ("wrong", "failure"): 1}
    (seconds,) = TASK_SECONDS.collect()
    found = {sample.labels["task"]: sample.value for sample in seconds.samples if sample.name.endswith("_count")}
    assert found == {"fine": 2, "wrong": 1}


@pytest.mark.parametrize("end", [TimeLimitExceeded(60), WorkerLostError("signal 9")])
def test_a_task_whose_process_was_killed_counts_as_that(app: Celery, end: Exception) -> None:
    @app.task(name="long", shared=False)
    def long() -> None: ...

    signals.task_failure.send(sender=long, task_id="1", exception=end, args=(), kwargs={}, traceback=None, einfo=None)
    assert counts() == {("long", "killed"): 1}


def test_a_wrong_address_ends_the_worker_with_the_settings_name(settings: Any) -> None:
    settings.METRICS_ADDRESS = "everywhere"
    with pytest.raises(ImproperlyConfigured, match="LOREKEEPER_METRICS must be a port"):
        tasks.count_tasks()
