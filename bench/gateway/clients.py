"""The load client as a process of its own."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from bench.gateway.load import Plan, Tally
from bench.gateway.processes import ROOT


@dataclass(slots=True)
class Client:
    """A client that runs."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls, plan: Plan) -> Client:
        """Let it begin."""
        with tempfile.TemporaryFile("w+") as told:
            json.dump(dataclasses.asdict(plan), told)
            told.seek(0)
            command = (sys.executable, "-m", "bench.gateway.load")
            return cls(subprocess.Popen(command, cwd=ROOT, stdin=told, stdout=subprocess.PIPE, text=True))

    @property
    def is_running(self) -> bool:
        """Whether it hasn't ended yet."""
        return self.process.poll() is None

    def result(self) -> Tally:
        """What came of it, once it has ended."""
        out, _ = self.process.communicate()
        if self.process.returncode:
            raise RuntimeError(f"the client ended with {self.process.returncode}")
        return Tally(**json.loads(out))
