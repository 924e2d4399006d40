"""A few transfers at once; the first failure, or Ctrl-C, stops the others at their next chunk."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


class Cancelled(Exception):
    """Raised inside a job whose result nobody waits for any more."""


class CancelSwitch:
    """Tells running jobs to stop."""

    def __init__(self) -> None:
        """Start switched off."""
        self._event = threading.Event()

    def switch_on(self) -> None:
        """Make every later `check` raise."""
        self._event.set()

    def check(self) -> None:
        """Raise `Cancelled` if switched on; jobs call it between chunks."""
        if self._event.is_set():
            raise Cancelled


def run_all(jobs: Sequence[Callable[[CancelSwitch], T]], *, workers: int) -> list[T]:
    """Run the jobs in threads and return their results in order; raise the first failure."""
    switch = CancelSwitch()
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="transfer") as pool:
        futures = [pool.submit(_run, job, switch) for job in jobs]
        try:
            wait(futures)
        except BaseException:
            switch.switch_on()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    failures = [error for future in futures if (error := future.exception()) is not None]
    for error in failures:
        if not isinstance(error, Cancelled):
            raise error
    return [future.result() for future in futures]


def _run(job: Callable[[CancelSwitch], T], switch: CancelSwitch) -> T:
    """Run a job unless another one has failed; its own failure stops the others before they can begin anything."""
    switch.check()
    try:
        return job(switch)
    except BaseException:
        switch.switch_on()
        raise
