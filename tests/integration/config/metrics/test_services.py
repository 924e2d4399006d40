"""gunicorn with two workers and a Celery worker with two processes: each page counts all of them together."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from celery import Celery
from django.db import connection
from prometheus_client.parser import text_string_to_metric_families

from cachecontrol.metrics import NAMES
from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.valkey import ValkeyServer
from registry.actors import system_actor
from registry.services.tokens import create_platform_token
from registry.states import Scope, TokenKind

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).resolve().parents[4]
DEADLINE_S = 60.0
TASK = "workers.tasks.serve_load_queue"


@contextmanager
def running(*arguments: str, folder: Path, **more: str) -> Iterator[int]:
    """A process of ours against the test's database, counting in ``folder``; its process id."""
    environment = {
        **os.environ,
        "LOREKEEPER_DB_NAME": str(connection.settings_dict["NAME"]),
        "LOREKEEPER_METRICS_FOLDER": str(folder / "metrics"),
        **more,
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE_S)


def until(check: Callable[[], Any]) -> Any:
    """What ``check`` says once that is true; a server that doesn't answer yet says nothing."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            found = check()
        except httpx.TransportError:
            found = None
        if found:
            return found
        assert time.monotonic() < deadline, "it did not come to it"
        time.sleep(0.05)


def samples(text: str, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels[label] for label in sorted(sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def has_every_name(text: str) -> bool:
    documented = {family.name for family in text_string_to_metric_families(text) if family.documentation}
    return set(NAMES) <= documented


def test_web_counts_the_requests_of_all_its_processes_and_of_those_that_were_killed(tmp_path: Path) -> None:
    token = create_platform_token(
        actor=system_actor("test"), name="mon", kind=TokenKind.MONITOR, scopes=[Scope.METRICS]
    ).text
    address = f"{LOOPBACK}:{free_port()}"
    arguments = ("gunicorn", "config.wsgi:application", "--bind", address, "--workers", "2", "--threads", "2")

    def page() -> str:
        answer = httpx.get(f"http://{address}/metrics", headers={"Authorization": f"Bearer {token}"})
        return answer.raise_for_status().text

    def answered(route: str = "healthz") -> float:
        return samples(page(), "lorekeeper_http_requests_total").get(("GET", route, "2xx"), 0)

    def call(times: int) -> None:
        for _ in range(times):
            httpx.get(f"http://{address}/healthz").raise_for_status()

    def workers() -> list[psutil.Process]:
        return psutil.Process(master).children()

    with running(*arguments, "--no-control-socket", folder=tmp_path) as master:
        until(lambda: len(workers()) == 2 and httpx.get(f"http://{address}/healthz").is_success)
        before = answered()
        call(60)
        assert {answered() for _ in range(6)} == {before + 60}
        assert has_every_name(page())
        # A connection of its own each time: both of them had some.
        assert len(list((tmp_path / "metrics").glob("counter_*.db"))) == 2
        killed = workers()[0]
        killed.kill()
        until(lambda: len({each.pid for each in workers()} - {killed.pid}) == 2)
        until(lambda: httpx.get(f"http://{address}/healthz").is_success)
        after = answered()
        assert after > before + 60
        call(20)
        assert {answered() for _ in range(6)} == {after + 20}
        assert len(list((tmp_path / "metrics").glob("counter_*.db"))) == 2


def test_a_worker_counts_the_tasks_of_all_its_processes(tmp_path: Path) -> None:
    valkey = ValkeyServer(tmp_path / "valkey", port=free_port(), password="secret")
    valkey.start()
    port = free_port()

    def page() -> str:
        return httpx.get(f"http://{LOOPBACK}:{port}/metrics").raise_for_status().text

    def ended() -> float:
        return samples(page(), "lorekeeper_tasks_total").get(("success", TASK), 0)

    arguments = ("celery", "-A", "config.celery", "worker", "-Q", "control", "--concurrency", "2")
    settings = {"LOREKEEPER_BROKER_URL": valkey.url, "LOREKEEPER_CACHE_URL": "", "LOREKEEPER_METRICS": str(port)}
    try:
        with (
            running(*arguments, folder=tmp_path, **settings),
            Celery("test", broker=valkey.url, set_as_current=False) as sender,
        ):
            for number in range(40):
                sender.send_task(TASK, kwargs={"pool": str(number)}, queue="control")
            until(lambda: ended() >= 40)
            text = page()
            assert samples(text, "lorekeeper_tasks_total")["success", TASK] == 40
            assert samples(text, "lorekeeper_task_seconds_count")[TASK,] == 40
            assert has_every_name(text)
            assert samples(text, "lorekeeper_fleet_figures_up") == {(): 1}
    finally:
        valkey.stop()
