"""The stack with small stand-ins for our own processes: how it starts, heals, refuses and stops."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
import redis

from deploy.embedded.errors import AlreadyRunning, EmbeddedError, StepFailed
from deploy.embedded.facts import StackFacts
from deploy.embedded.plan import broker_url
from deploy.embedded.postgres import OWNER, PostgresServer
from deploy.embedded.specs import ROOT, AliveHealth, FromFile, HttpHealth, ProcessSpec, Spec, StepSpec
from deploy.embedded.stack import Stack

pytestmark = pytest.mark.e2e

PATH = {"PATH": os.defpath}
WRITE_TOKEN = "import json, sys; json.dump({'gateway_token': 'lk_made'}, open(sys.argv[1], 'w'))"
WITH_CHILD = """
import subprocess, sys, time
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
time.sleep(600)
"""

ABANDON = """
import os, signal, sys
from pathlib import Path
from deploy.embedded.stack import Stack
stack = Stack(Path(sys.argv[1]), plan=lambda facts: (), durable=False)
stack.start()
stack.wait_ready()
os.kill(stack._warden.pid, signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""


def small_plan(facts: StackFacts) -> tuple[Spec, ...]:
    token = facts.secrets.bootstrap
    return (
        StepSpec("bootstrap", (sys.executable, "-c", WRITE_TOKEN, str(token)), PATH, needs=("postgres",)),
        ProcessSpec(
            name="web",
            argv=(sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(facts.ports["web"])),
            environment={**PATH, "TOKEN": FromFile(token, "gateway_token")},
            health=HttpHealth(facts.url("web")),
            needs=("bootstrap",),
            folder=facts.data / "served",
        ),
        ProcessSpec("pair", (sys.executable, "-c", WITH_CHILD), PATH, health=AliveHealth(0.5)),
    )


@pytest.fixture
def stacks(folder: Path) -> Iterator[Callable[..., Stack]]:
    """Makes stacks in one folder, and stops each at the end."""
    made: list[Stack] = []

    def make(plan: Callable[[StackFacts], tuple[Spec, ...]] = small_plan) -> Stack:
        made.append(Stack(folder / "data", plan=plan, durable=False))
        return made[-1]

    yield make
    for stack in made:
        stack.stop()
    assert processes_of(folder) == []


def url_of(stack: Stack) -> str:
    server = stack.server("postgres")
    assert isinstance(server, PostgresServer)
    return server.url(OWNER)


def processes_of(folder: Path) -> list[list[str]]:
    """Command lines of all processes that name this folder or work in it."""
    found: list[list[str]] = []
    for process in psutil.process_iter(["pid", "cmdline", "cwd", "status"]):
        words = process.info["cmdline"] or []
        inside = str(folder) in " ".join(words) or str(process.info["cwd"]).startswith(str(folder))
        if inside and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(words)
    return found


def test_all_becomes_ready_and_a_ready_file_says_where(stacks: Callable[..., Stack], folder: Path) -> None:
    stack = stacks()
    stack.start()
    stack.wait_ready()
    assert httpx.get(stack.urls["web"]).status_code == 200
    assert stack.env_for("web")["TOKEN"] == "lk_made"
    stack.write_ready_file(folder / "ready.json")
    ready = json.loads((folder / "ready.json").read_text())
    assert ready["urls"]["web"] == stack.urls["web"]
    assert ready["pids"]["postgres"] == stack.pid_of("postgres")
    assert "GET / " in (stack.data / "logs" / "web.log").read_text()


def test_each_process_that_is_killed_comes_back_on_its_port_with_its_data(stacks: Callable[..., Stack]) -> None:
    stack = stacks()
    with stack:
        with psycopg.connect(url_of(stack), options="-c synchronous_commit=on") as owner:
            owner.execute("CREATE TABLE kept AS SELECT 'still here' AS word")
        before = {name: stack.pid_of(name) for name in stack.names}
        for name in stack.names:
            stack.kill(name, group=True)
        stack.wait_ready(seconds=60)
        assert all(stack.pid_of(name) != pid for name, pid in before.items())
        assert httpx.get(stack.urls["web"]).status_code == 200
        with psycopg.connect(url_of(stack)) as owner:
            assert owner.execute("SELECT word FROM kept").fetchone() == ("still here",)
        with redis.Redis.from_url(broker_url(stack.facts)) as client:
            assert client.ping()


def test_the_children_of_a_killed_process_go_with_it(stacks: Callable[..., Stack]) -> None:
    with stacks() as stack:
        children = psutil.Process(stack.pid_of("pair")).children()
        assert len(children) == 1
        stack.kill("pair", signal.SIGKILL)
        stack.wait_ready("pair")
        assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)


def test_a_process_is_restarted_from_outside_with_its_children(stacks: Callable[..., Stack]) -> None:
    with stacks() as stack:
        before = stack.pid_of("pair")
        children = psutil.Process(before).children()
        command = [sys.executable, "-m", "deploy.embedded", "restart", "pair", "--data", str(stack.data)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (0, "restarted pair\n")
        stack.wait_ready("pair")
        assert stack.pid_of("pair") != before
        assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
        unknown = subprocess.run(
            [*command[:4], "nobody", *command[5:]], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (unknown.returncode, "no process nobody runs" in unknown.stderr) == (1, True)


def test_a_second_start_reuses_ports_secrets_and_data(stacks: Callable[..., Stack]) -> None:
    with stacks() as first:
        facts = first.facts
        with psycopg.connect(url_of(first)) as owner:
            owner.execute("CREATE TABLE kept AS SELECT 'still here' AS word")
    begun = time.monotonic()
    with stacks() as second:
        print(f"second start of the three services: {time.monotonic() - begun:.2f} s")
        assert second.facts == facts
        with psycopg.connect(url_of(second)) as owner:
            assert owner.execute("SELECT word FROM kept").fetchone() == ("still here",)


def test_a_second_stack_in_the_same_folder_is_refused_and_the_first_goes_on(stacks: Callable[..., Stack]) -> None:
    with stacks() as first:
        with pytest.raises(AlreadyRunning, match=str(os.getpid())):
            stacks().start()
        assert first.server("postgres").health()


def test_a_step_that_fails_is_named_and_everything_can_be_stopped(stacks: Callable[..., Stack]) -> None:
    def plan(facts: StackFacts) -> tuple[Spec, ...]:
        step = StepSpec(
            "migrate", (sys.executable, "-c", "raise SystemExit('no such table')"), PATH, needs=("postgres",)
        )
        return (step, ProcessSpec("web", ("true",), PATH, health=AliveHealth(), needs=("migrate",)))

    stack = stacks(plan)
    stack.start()
    with pytest.raises(StepFailed, match="migrate: exit status 1"):
        stack.wait_ready()
    stack.stop()
    assert "no such table" in (stack.data / "logs" / "migrate.log").read_text()
    assert not (stack.data / "logs" / "web.log").exists()


def test_a_process_that_ends_at_its_first_start_is_named_with_its_last_words(stacks: Callable[..., Stack]) -> None:
    def plan(facts: StackFacts) -> tuple[Spec, ...]:
        return (ProcessSpec("web", (sys.executable, "-c", "raise SystemExit('bad')"), PATH, health=AliveHealth(5)),)

    stack = stacks(plan)
    stack.start()
    with pytest.raises(EmbeddedError, match="web ended with 1:\nbad"):
        stack.wait_ready("web")


def test_a_stop_in_the_middle_of_the_start_leaves_nothing(stacks: Callable[..., Stack], folder: Path) -> None:
    for seconds in (0.0, 0.3, 0.8):
        stack = stacks()
        stack.start()
        time.sleep(seconds)
        stack.stop()
        assert processes_of(folder) == []


def test_what_a_killed_supervisor_and_warden_left_holds_no_port_at_the_next_start(
    stacks: Callable[..., Stack], folder: Path
) -> None:
    subprocess.run([sys.executable, "-c", ABANDON, str(folder / "data")], cwd=ROOT, check=False)
    assert processes_of(folder)
    ports = json.loads((folder / "data" / "stack.json").read_text())["ports"]
    with stacks() as stack:
        assert stack.facts.ports == ports
        assert stack.server("postgres").health()
