"""Several real processes that count in one folder, and what becomes of the counts of those that die."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from config.metrics import slots
from config.metrics.slots import NoSlot, ProcessSlot

ROOT = Path(__file__).resolve().parents[4]


@contextmanager
def process(folder: Path, times: int) -> Iterator[tuple[int, int]]:
    """The slots of the process and of the child that it had, while it runs; it is killed."""
    command = [sys.executable, "-m", "tests.integration.config.metrics.counting", str(folder), str(times)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            said = dict(running.stdout.readline().split() for _ in range(2))
            yield int(said["parent"]), int(said["child"])
        finally:
            running.kill()


def counted(folder: Path) -> dict[str, float]:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
    return {sample.name: sample.value for family in registry.collect() for sample in family.samples}


def test_processes_are_added_up_and_a_child_counts_for_itself(tmp_path: Path) -> None:
    with process(tmp_path, 3) as first, process(tmp_path, 5) as second:
        assert len({*first, *second}) >= 3
        assert counted(tmp_path)["work_total"] == 10
        assert counted(tmp_path)["took_count"] == 8


def test_what_a_killed_process_counted_stays_and_its_successor_goes_on_in_its_file(tmp_path: Path) -> None:
    with process(tmp_path, 1):
        with process(tmp_path, 3) as killed:
            pass
        with process(tmp_path, 5) as successor:
            assert successor == killed
            assert counted(tmp_path)["work_total"] == 12
        assert len(list(tmp_path.glob("counter_*.db"))) == 3


def test_a_service_that_starts_anew_begins_at_nothing(tmp_path: Path) -> None:
    with process(tmp_path, 3):
        pass
    with process(tmp_path, 1):
        assert counted(tmp_path)["work_total"] == 2


def test_slots_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_MOST", 1)
    kept = ProcessSlot(tmp_path)
    with pytest.raises(NoSlot):
        ProcessSlot(tmp_path)
    assert kept() == 0
