"""A node without a control plane: broker, contract server of vLLM, web and store on loopback, and a real agent."""

from __future__ import annotations

import math
import re
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from celery import Celery
from cryptography.hazmat.primitives.asymmetric import ec

from deploy.embedded.ports import free_port
from deploy.embedded.valkey import ValkeyServer
from registry.signing.local_key import LocalKeySigner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.workers.node.stage import AgentProcess, LocalWeb
    from tests.unit.workers.node.kit import Release

BASE = "base"
CPU_SLOTS, GPU_SLOTS = 256, 16
PATIENCE_S = 60.0
_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class World:
    """Commands go to the queue, outcomes come to `web`."""

    node: str
    web: LocalWeb
    agent: AgentProcess
    sender: Celery
    key: LocalKeySigner
    phase_s: float
    _seen: int = 0
    _phase: tuple[str, float] = ("", math.inf)

    @contextmanager
    def phase(self, what: str) -> Iterator[None]:
        """`TimeoutError` from whoever signs or waits in the block for longer than a phase may take."""
        self._phase = (what, time.monotonic() + self.phase_s)
        try:
            yield
        finally:
            self._phase = ("", math.inf)

    def release(self, number: int) -> Release:
        """A signed version whose weights are its own, in the store."""
        self._check()
        from tests.factories.adapters import adapter_files  # noqa: PLC0415
        from tests.unit.workers.node.kit import sign_contents  # noqa: PLC0415

        release = sign_contents(
            self.key, adapter_files(seed=number), version=f"v{number}", store=f"{self.web.url}/store/"
        )
        self.web.objects |= {file.sha256: release.contents[file.path] for file in release.files}
        return release

    def warm(self, release: Release, *, generation: int) -> None:
        self._send("node.warm", release.warm(generation=generation, granted={"node": self.node}))

    def demote(self, release: Release, *, generation: int) -> None:
        command = release.evict(generation=generation, granted={"node": self.node}, to="disk", drain_s=5)
        self._send("node.evict", command)

    def collect(self, end: str, *, at_least: int) -> list[dict[str, Any]]:
        """Wait until so many more commands have ended, as they ought to or failed; their outcomes.

        Raises:
            TimeoutError: nothing comes, or the phase is over. RuntimeError: the agent has ended.

        """
        found: list[dict[str, Any]] = []
        until = time.monotonic() + PATIENCE_S
        while len(found) < at_least:
            if outcomes := self.web.outcomes[self._seen :]:
                self._seen += len(outcomes)
                found += [each for each in outcomes if each["outcome"] in {end, "failed"}]
                until = time.monotonic() + PATIENCE_S
            self._check(until)
            time.sleep(0.001)
        return found

    def memory_mib(self) -> tuple[float, float]:
        """What the agent takes of memory now, and has taken at most."""
        status = Path(f"/proc/{self.agent.process.pid}/status").read_text()
        now, most = (int(re.search(rf"{key}:\s+(\d+)", status)[1]) / 1024 for key in ("VmRSS", "VmHWM"))  # type: ignore[index]
        return now, most

    def _check(self, until: float = math.inf) -> None:
        (what, end), now = self._phase, time.monotonic()
        if now > end:
            raise TimeoutError(f"{what}: it took longer than {self.phase_s:g} s")
        if (code := self.agent.process.poll()) is not None:
            raise RuntimeError(f"{what}: the agent ended with {code}:\n{self.agent.text()[-2000:]}")
        if now > until:
            raise TimeoutError(f"{what}: the agent does not get on:\n{self.agent.text()[-2000:]}")

    def _send(self, task: str, command: object) -> None:
        self.sender.send_task(task, kwargs={"command": command}, queue=f"node.{self.node}")


@contextmanager
def node(*, phase_s: float) -> Iterator[World]:
    """Everything up and running, and gone afterwards; each phase may take so many seconds."""
    from tests.integration.workers.node.stage import AgentProcess, LocalWeb  # noqa: PLC0415

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lorekeeper-bench-agent-")))
        valkey = ValkeyServer(folder / "valkey", port=free_port(), password=secrets.token_hex(8))
        valkey.start()
        stack.callback(valkey.stop)
        web = stack.enter_context(LocalWeb())
        key = LocalKeySigner(ec.generate_private_key(ec.SECP256R1()))
        (folder / "keys.pem").write_text(key.public_pem())
        engine = stack.enter_context(_engine())
        agent = AgentProcess(_settings(folder, web.url, valkey.url, engine), folder / "agent.log")
        stack.callback(_end, agent)
        sender = Celery("bench", broker=valkey.url, set_as_current=False)
        stack.callback(sender.close)
        yield World("bench-1", web, agent, sender, key, phase_s)


def _end(agent: AgentProcess) -> None:
    """One that doesn't end when told to is not left behind, and is no sound end."""
    try:
        agent.terminate()
    except subprocess.TimeoutExpired:
        agent.kill()
        raise


def _settings(folder: Path, web: str, broker: str, engine: str) -> dict[str, str]:
    return {
        "LOREKEEPER_NODE_NAME": "bench-1",
        "LOREKEEPER_WEB_URL": web,
        "LOREKEEPER_NODE_TOKEN": "lk_bench",
        "LOREKEEPER_BROKER_URL": broker,
        "LOREKEEPER_NODE_CACHE": str(folder / "cache"),
        "LOREKEEPER_NODE_ENGINE_URL": engine,
        "LOREKEEPER_NODE_BASE_MODEL": BASE,
        "LOREKEEPER_TRUSTED_KEYS": str(folder / "keys.pem"),
    }


@contextmanager
def _engine() -> Iterator[str]:
    port = free_port()
    slots = ("--cpu-slots", str(CPU_SLOTS), "--gpu-slots", str(GPU_SLOTS))
    argv = (sys.executable, "-m", "tests.fakes.engine_vllm", "--port", str(port), "--base", BASE, *slots)
    process = subprocess.Popen(argv, cwd=_ROOT)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(url: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            httpx.get(f"{url}/health", trust_env=False)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("the engine does not start")
