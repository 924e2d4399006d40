"""SIGKILL to any one process in the middle of push, validate, warm, alias move and rollback: nothing is lost."""

import itertools
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from deploy.embedded.stack import Stack
from tests.e2e.journey import ADAPTER, ALIAS_REF, TENANT, Journey, wait_until
from tests.factories.adapters import adapter_files
from tests.factories.base_folders import write_adapter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
T = TypeVar("T")
PROCESSES = ("postgres", "valkey", "s3", "web", "gateway", "validate", "control", "beat", "agent", "engine")
_numbers = itertools.count(1)


def killed_during(stack: Stack, process: str, act: Callable[[], T], *, when: Callable[[], bool]) -> T:
    """Run ``act``, send SIGKILL to ``process`` once ``when`` holds, and return the result of ``act``.

    A step that ends before it could be seen in flight is hit right after: the kill is never left out.
    """
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(act)
        while not result.done() and not when():
            time.sleep(0.005)
        stack.kill(process, signal.SIGKILL, group=True)
        stack.wait_ready(process, seconds=60)
        return result.result(timeout=90)


def after(seconds: float) -> Callable[[], bool]:
    """A moment so long after the step began: for steps that are one transaction, which nobody can see half done."""
    began = time.monotonic()
    return lambda: time.monotonic() - began >= seconds


@pytest.mark.parametrize("process", PROCESSES)
def test_killing_a_process_at_each_step_loses_nothing_and_heals(
    fake_stack: Stack, journey: Journey, process: str, tmp_path: Path
) -> None:
    number = next(_numbers)
    old, new = f"{process}-{number}-old", f"{process}-{number}-new"
    folder_old = write_adapter(tmp_path / "old", adapter_files(seed=1000 + 2 * number))
    folder_new = write_adapter(tmp_path / "new", adapter_files(seed=1001 + 2 * number))

    def during(act: Callable[[], T], *, when: Callable[[], bool]) -> T:
        return killed_during(fake_stack, process, act, when=when)

    assert during(lambda: journey.push(folder_old, old), when=after(0.02)).state == "candidate"
    pushed = during(lambda: journey.push(folder_new, new), when=lambda: journey.is_in_flight(new))
    assert pushed.state == "candidate"
    assert during(lambda: journey.approve(old), when=after(0.01)).state == "approved"
    assert journey.approve(new).state == "approved"
    slow_down_loads(fake_stack)
    during(lambda: journey.warm(old), when=lambda: journey.is_in_flight(old))
    during(lambda: journey.point_alias(old), when=after(0.005))
    assert answers(journey, old)
    during(lambda: journey.point_alias(new), when=after(0.01))
    assert answers(journey, new)
    rolled_back = during(journey.roll_back, when=after(0.01))
    assert rolled_back.version == old
    assert answers(journey, old)
    check_nothing_is_lost_or_doubled(journey, old, new)


def slow_down_loads(stack: Stack) -> None:
    """Make a load long enough to be hit in the middle."""
    httpx.post(f"{stack.urls['engine']}/fake/faults", json={"load_delay_s": 0.5}).raise_for_status()


def answers(journey: Journey, name: str) -> bool:
    """Whether the alias answers with that version, once everything is back."""
    wait_until(lambda: journey.answering_version() == f"{TENANT}/{ADAPTER}@{name}", f"{name} answers")
    return True


def check_nothing_is_lost_or_doubled(journey: Journey, old: str, new: str) -> None:
    verdict = journey.audit()
    assert verdict.intact, verdict
    history = journey.clients["rui"].aliases.history(ALIAS_REF)
    assert [revision.revision for revision in history] == list(range(len(history), 0, -1))
    assert [revision.version for revision in history[:3]] == [old, new, old]
    for name in (old, new):
        version = journey.show(name)
        assert version.state == "approved"
        assert [approval["reviewer"] for approval in version.approvals] == ["ben@acme.example"]
