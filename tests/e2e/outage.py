"""What takes everything behind a gateway away for an hour: processes that stay ended, and time that jumps."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.stack import Stack
from tests.e2e.journey import wait_until

ROOT = Path(__file__).resolve().parents[2]
HOUR_S, JUMP_S = 3600.0, 15.0
# What all that takes by the real clocks, which go on beside.
SLACK_S = 120.0
# When the engine fails for a while.
_FAILS_S = (1200.0, 1260.0)
# Those that need others first; each group is ended and started together.
_GROUPS = (("agent",), ("beat", "control", "validate", "web"), ("valkey", "postgres"))


@contextmanager
def all_stopped(stack: Stack) -> Iterator[None]:
    """Only the object store, the engine and the gateway are left while in the block; nobody starts the others again."""
    with ThreadPoolExecutor() as pool:
        for group in _GROUPS:
            list(pool.map(lambda name: stack.server(name).stop(), group))
        try:
            yield
        finally:
            for group in reversed(_GROUPS):
                list(pool.map(lambda name: stack.server(name).start(), group))


@dataclass(slots=True)
class TimedGateway:
    """A gateway beside the stack's own, by the same settings, with a folder and clocks of its own."""

    url: str
    process: "subprocess.Popen[str]"

    def jump(self, seconds: float) -> None:
        """So much time passes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "there\n"

    def readiness(self) -> dict[str, object]:
        """What /readyz says."""
        try:
            return dict(httpx.get(f"{self.url}/readyz", timeout=5).json())
        except httpx.TransportError:
            return {}

    def kill(self) -> None:
        """As a power cut does."""
        self.process.kill()
        self.process.wait()


@contextmanager
def timed_gateway(stack: Stack, folder: Path, *, ahead_s: float = 0) -> Iterator[TimedGateway]:
    """One that serves already; its log is added to a file in the folder."""
    port = free_port()
    folder.mkdir(exist_ok=True)
    arguments = (str(ahead_s), "--host", LOOPBACK, "--port", str(port))
    environment = {**stack.env_for("gateway"), "LOREKEEPER_GATEWAY_STATE_FOLDER": str(folder / "state")}
    with (folder / "gateway.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.gateway_in_time", *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        gateway = TimedGateway(f"http://{LOOPBACK}:{port}", process)
        try:
            wait_until(lambda: gateway.readiness().get("ready") is True, "the gateway serves")
            yield gateway
        finally:
            gateway.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def kept_routes(folder: Path) -> str:
    """The routing data as that gateway keeps it."""
    copy = folder / "state" / "routing.jsonl"
    return copy.read_text() if copy.exists() else ""


def kept_records(folder: Path) -> list[Path]:
    """The files of records that it couldn't send yet."""
    return list((folder / "state" / "spool").glob("*.records"))


class Hour:
    """What is asked while time passes; `surprises` are answers that were other than they should be.

    The aliases are `one` and `two`, at the versions of these names; `ids` are of all requests that have to be recorded.
    """

    def __init__(self, stack: Stack, gateway: TimedGateway, *, usual: httpx.Client, brief_key: str) -> None:
        self.ids: set[str] = set()
        self.surprises: list[str] = []
        self._engine = stack.urls["engine"]
        self._gateway = gateway
        self._usual = usual
        self._brief_key = brief_key

    def pass_by(self) -> None:
        """From its beginning to its end; for a minute of it the engine fails."""
        for jump in range(round(HOUR_S / JUMP_S)):
            at_s = (jump + 1) * JUMP_S
            self._gateway.jump(JUMP_S)
            if at_s in _FAILS_S:
                self._let_engine(fail=at_s == _FAILS_S[0])
            if _FAILS_S[0] <= at_s < _FAILS_S[1]:
                self._ask(self._gateway.url, "one", expected=502)
            else:
                self.ask(self._gateway, at_s=at_s)

    def ask(self, gateway: TimedGateway, *, at_s: float) -> None:
        """So long after the beginning: both aliases, and with the key that holds for half an hour."""
        for alias in ("one", "two"):
            self._ask(gateway.url, alias)
            self._ask(str(self._usual.base_url), alias)
        if at_s < HOUR_S / 2 - SLACK_S:
            self._ask(gateway.url, "one", key=self._brief_key)
        elif at_s >= HOUR_S / 2:
            self._ask(gateway.url, "one", key=self._brief_key, expected=401)

    def _ask(self, url: str, alias: str, *, key: str = "", expected: int = 200) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        body = {"model": alias, "prompt": "Where is my order?", "max_tokens": 4}
        answer = self._usual.post(f"{url.rstrip('/')}/v1/completions", json=body, headers=headers)
        version = answer.headers.get("x-lorekeeper-version", f"@{alias}")
        if answer.status_code != expected or not version.endswith(f"@{alias}"):
            self.surprises.append(f"{alias} at {url}: {answer.status_code} by {version}, {answer.text[:200]}")
        if answer.status_code != httpx.codes.UNAUTHORIZED:
            self.ids.add(answer.headers["x-lorekeeper-request-id"])

    def _let_engine(self, *, fail: bool) -> None:
        httpx.post(f"{self._engine}/fake/faults", json={"broken_generation": fail}).raise_for_status()
