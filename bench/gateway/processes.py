"""Processes on a core of their own: started, stopped, held, and what they took."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
GATEWAY_CORE = 0
OTHERS_CORE = 1
# Of a process's clocks on Linux the one that the scheduler keeps (include/linux/posix-timers.h).
_SCHEDULED = 2
_END_S = 15.0
_PAUSE_S = 0.1
_LAST_WORDS = 2000


@dataclass(slots=True)
class Pinned:
    """A process that runs on one core. One that is held takes no time from those that are measured."""

    process: subprocess.Popen[str]
    log: Path | None = None

    @classmethod
    def start(
        cls, command: Sequence[str], *, core: int, env: Mapping[str, str] | None = None, log: Path | None = None
    ) -> Pinned:
        """Run the command; what it prints goes to ``log``, or to a pipe that the caller reads."""
        out = subprocess.PIPE if log is None else log.open("w")
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, text=True, stdout=out, stderr=subprocess.STDOUT if log else None
        )
        # Before it has made any thread, so that all of them stay there.
        os.sched_setaffinity(process.pid, {core})
        return cls(process, log)

    def first_line(self) -> str:
        """Wait for the first line that it prints; empty if it ends without one."""
        return self.process.stdout.readline() if self.process.stdout is not None else ""

    def hold(self) -> None:
        """Stop it where it is."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run again."""
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Terminate it, by force if it takes too long."""
        self.go_on()
        self.process.terminate()
        try:
            self.process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def last_words(self) -> str:
        """Its exit status and the end of its log."""
        said = self.log.read_text()[-_LAST_WORDS:] if self.log is not None else ""
        return f"status {self.process.returncode}, {said}"

    @property
    def cpu_s(self) -> float:
        """Seconds of processor time that it has taken, by its own clock (clock_getcpuclockid): to the nanosecond."""
        return time.clock_gettime((~self.process.pid << 3) | _SCHEDULED)

    @property
    def resident_mb(self) -> float:
        """Its resident memory now, in MB of a million bytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        kib = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
        return kib * 1024 / 1e6


def come_first(*pids: int) -> bool:
    """Let these processes (0: this one, and what it starts from now on) run in real time; whether that is allowed."""
    try:
        for pid in pids:
            os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return False
    return True


def wait_until_ready(url: str, *, process: Pinned, within_s: float) -> None:
    """Ask until it answers with 200; raises TimeoutError, or RuntimeError if the process ended."""
    deadline = time.monotonic() + within_s
    with httpx.Client(trust_env=False, timeout=5) as client:
        while time.monotonic() < deadline:
            if process.process.poll() is not None:
                raise RuntimeError(f"the process behind {url} ended: {process.last_words}")
            try:
                if client.get(url).status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(_PAUSE_S)
    raise TimeoutError(f"{url} did not become ready")
