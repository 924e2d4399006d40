"""The one command, with every process of its own: started, hurt and stopped from outside."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from deploy.embedded.specs import ROOT

pytestmark = pytest.mark.e2e

NAMES = {"postgres", "valkey", "s3", "web", "gateway", "validate", "control", "beat"}


class Up:
    """`up` in one folder, as often as it is started."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.ready_file = folder / "ready.json"
        self.output = folder / "output.txt"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        self.ready_file.unlink(missing_ok=True)
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*self.command(), "--ready-file", str(self.ready_file)],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return self.process

    def command(self) -> list[str]:
        return [sys.executable, "-m", "deploy.embedded", "up", "--data", str(self.data)]

    def wait_ready(self) -> dict[str, dict[str, str]]:
        assert self.process is not None
        deadline = time.monotonic() + 120
        while not self.ready_file.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"not ready:\n{self.output.read_text()[-3000:]}")
            time.sleep(0.1)
        return json.loads(self.ready_file.read_text())  # type: ignore[no-any-return]

    def processes(self) -> list[psutil.Process]:
        """Every process that still runs and belongs to this folder, by its environment, arguments or place."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
                told = (*process.cmdline(), process.cwd(), *process.environ().values())
                if process.status() != psutil.STATUS_ZOMBIE and any(str(self.data) in word for word in told):
                    found.append(process)
        return found


@pytest.fixture
def up(folder: Path) -> Iterator[Up]:
    made = Up(folder)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.terminate()
        made.process.wait(timeout=60)
    assert made.processes() == []


def test_one_command_starts_everything_reuses_it_and_leaves_nothing_at_ctrl_c(up: Up) -> None:
    begun = time.monotonic()
    process = up.start()
    first = up.wait_ready()
    print(f"first start: {time.monotonic() - begun:.1f} s")
    assert set(first["pids"]) == NAMES
    for name, path in (("web", "readyz"), ("gateway", "readyz"), ("s3", "healthz")):
        assert httpx.get(f"{first['urls'][name]}/{path}").status_code == 200
    refused = subprocess.run(up.command(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 3
    assert f"already in use by process {process.pid}" in refused.stdout

    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    print(f"stop: {time.monotonic() - begun:.1f} s")
    assert process.returncode == 0
    assert "no engine was given, so there is no engine and no node agent" in up.output.read_text()
    assert up.processes() == []
    assert not up.ready_file.exists()

    begun = time.monotonic()
    up.start()
    second = up.wait_ready()
    print(f"second start: {time.monotonic() - begun:.1f} s")
    assert second["urls"] == first["urls"]


def test_when_the_command_itself_is_killed_everything_ends_and_the_next_start_works(up: Up) -> None:
    process = up.start()
    urls = up.wait_ready()["urls"]
    begun = time.monotonic()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while up.processes():
        assert time.monotonic() - begun < 20, [left.cmdline() for left in up.processes()]
        time.sleep(0.1)
    print(f"nothing is left after {time.monotonic() - begun:.1f} s")
    up.start()
    assert up.wait_ready()["urls"] == urls
    stopped = subprocess.run(
        [sys.executable, "-m", "deploy.embedded", "down", "--data", str(up.data)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "stopped" in stopped.stdout
