"""Import directions, error mapping, task names and translation: promises between the parts."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command

from config.problems import status_of
from registry.errors import LorekeeperError

ROOT = Path(__file__).resolve().parents[2]


def test_imports_point_the_right_way() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def every_error() -> list[type[LorekeeperError]]:
    for package in ("registry", "releases", "cachecontrol"):
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if module.name.endswith("errors"):
                importlib.import_module(module.name)
    found, todo = set(), [LorekeeperError]
    while todo:
        cls = todo.pop()
        found.add(cls)
        todo.extend(cls.__subclasses__())
    return sorted(found, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("error", every_error(), ids=lambda cls: cls.__name__)
def test_every_error_has_a_code_and_a_status(error: type[LorekeeperError]) -> None:
    assert re.fullmatch(r"[a-z_]+", error.code)
    if error.__module__.split(".")[0] in {"registry", "releases", "cachecontrol"}:
        instance = error.__new__(error)
        assert status_of(instance) is not None


def test_every_nudge_names_a_task_that_exists() -> None:
    from config.celery import app
    from registry import dispatch

    app.loader.import_default_modules()
    names = {value for name, value in vars(dispatch).items() if name.isupper() and isinstance(value, str)}
    assert names <= set(app.tasks)


def test_every_scheduled_task_exists() -> None:
    from config.celery import app

    app.loader.import_default_modules()
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)


def test_every_queue_that_tasks_are_sent_to_has_a_worker() -> None:
    from config.celery import app
    from registry import dispatch

    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].values()
    commands = [service["command"] for service in services if "-Q" in service.get("command", ())]
    served = {queue for command in commands for queue in command[command.index("-Q") + 1].split(",")}
    scheduled = {entry["options"]["queue"] for entry in app.conf.beat_schedule.values()}
    assert served == scheduled | set(dispatch._QUEUES.values())


def test_every_scheduled_task_can_be_sent() -> None:
    from config.celery import app

    app.loader.import_default_modules()
    for entry in app.conf.beat_schedule.values():
        task = app.tasks[entry["task"]]
        soft = task.soft_time_limit or app.conf.task_soft_time_limit
        assert soft is None or soft <= (task.time_limit or app.conf.task_time_limit)


def test_every_task_acknowledges_late_and_has_a_time_limit() -> None:
    from config.celery import app

    app.loader.import_default_modules()
    own = [task for name, task in app.tasks.items() if name.startswith("workers.tasks.")]
    assert own
    assert [task.name for task in own if not task.acks_late or not task.time_limit] == []


def test_every_audit_event_function_is_used() -> None:
    for app in ("registry", "releases", "cachecontrol"):
        events = importlib.import_module(f"{app}.events")
        code = "\n".join(path.read_text() for path in (ROOT / app).rglob("*.py") if path.name != "events.py")
        unused = [
            name
            for name, function in inspect.getmembers(events, inspect.isfunction)
            if function.__module__ == events.__name__ and not name.startswith("_") and f"{name}(" not in code
        ]
        assert unused == [], app


def test_the_code_names_no_path_of_a_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = [(name, (ROOT / name).read_text(errors="ignore")) for name in listed if (ROOT / name).is_file()]
    assert [
        name for name, text in texts if re.search(r"/(home|root|Users)/\w", text) and "test_contracts" not in name
    ] == []


def test_django_finds_nothing_wrong_with_the_project() -> None:
    call_command("check", fail_level="WARNING")


@pytest.mark.django_db
def test_no_model_change_is_without_its_migration() -> None:
    call_command("makemigrations", check=True, dry_run=True)
