"""What becomes of servers whose owner is killed: a program of its own owns Valkey here."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from deploy.embedded.ports import free_port
from deploy.embedded.specs import ROOT
from deploy.embedded.valkey import ValkeyServer

OWNER = """
import sys
from pathlib import Path
from deploy.embedded.valkey import ValkeyServer
server = ValkeyServer(Path(sys.argv[1]), port=int(sys.argv[2]), password="word")
server.start()
print(server.pid, server._warden.pid, flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Owner:
    process: subprocess.Popen[str]
    valkey: psutil.Process
    warden: psutil.Process
    folder: Path


@pytest.fixture
def owner(folder: Path) -> Iterator[Owner]:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder), str(free_port())],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    valkey, warden = (psutil.Process(int(word)) for word in process.stdout.readline().split())
    yield Owner(process, valkey, warden, folder)
    for left in (process.pid, valkey.pid, warden.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)
    process.communicate()


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone_within(process: psutil.Process, *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not runs(process):
            return True
        time.sleep(0.02)
    return False


def wait_until_it_ignores(warden: psutil.Process) -> None:
    """Right after its start it is still on its way; one that ends then is replaced by its owner."""
    for _ in range(200):
        status = Path(f"/proc/{warden.pid}/status").read_text().splitlines()
        ignored = next(int(line.split()[1], 16) for line in status if line.startswith("SigIgn:"))
        if ignored & 1 << (signal.SIGTERM - 1):
            return
        time.sleep(0.05)
    pytest.fail("the warden never ignored SIGTERM")


def test_when_the_owner_is_killed_its_server_and_the_warden_end(owner: Owner) -> None:
    os.kill(owner.process.pid, signal.SIGKILL)
    assert gone_within(owner.valkey, seconds=10)
    assert gone_within(owner.warden, seconds=10)


def test_signals_to_the_warden_are_ignored_as_long_as_the_owner_lives(owner: Owner) -> None:
    wait_until_it_ignores(owner.warden)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(owner.warden.pid, number)
    time.sleep(0.3)
    assert runs(owner.warden)
    assert runs(owner.valkey)


def test_when_owner_and_warden_are_killed_the_next_start_ends_what_they_left(owner: Owner) -> None:
    for pid in (owner.warden.pid, owner.process.pid):
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.3)
    assert runs(owner.valkey)
    with ValkeyServer(owner.folder, port=free_port(), password="word") as server:
        assert not runs(owner.valkey)
        assert server.health()


def test_a_killed_warden_is_replaced_and_still_knows_its_servers(folder: Path) -> None:
    with ValkeyServer(folder, port=free_port(), password="word") as server:
        assert server._warden is not None
        assert server._warden.pid is not None
        first = psutil.Process(server._warden.pid)
        first.kill()
        assert gone_within(first, seconds=5)
        server._warden.ensure_alive()
        assert server._warden.pid != first.pid
        valkey = psutil.Process(server.pid)
        server._warden.close()
        assert gone_within(valkey, seconds=10)
