"""The embedded stack as the demo uses it: with one node, whose engine is a real vLLM."""

import json
import time
from pathlib import Path

from deploy.demo.recipes import BASE_NAME, BASE_REVISION
from deploy.embedded.facts import EngineOptions
from deploy.embedded.stack import Stack

NODE_NAME = "cpu-1"
ADMIN_EMAIL = "admin@acme.example"
# What is started last, because it waits for the engine.
_NODE_PARTS = frozenset({"engine", "agent"})
# Nothing is in flight when a later run makes room on its node: it need not wait as long as a busy one would.
_TIMINGS = {"LOREKEEPER_DRAIN_SECONDS": "1", "LOREKEEPER_EVICT_GRACE": "3", "LOREKEEPER_COLD_WAIT": "60"}


class Platform:
    """Everything the demo runs on, in one data folder; `stop` leaves no process behind, started or not."""

    def __init__(self, data: Path, *, engine_python: Path, model: Path) -> None:
        """Say where the data is, which Python has vLLM, and which model it serves."""
        engine = EngineOptions(
            python=engine_python.absolute(),
            model=model.resolve(),
            base_model=BASE_NAME,
            base_revision=BASE_REVISION,
            node=NODE_NAME,
        )
        self._stack = Stack(data, engine=engine, admin_email=ADMIN_EMAIL, settings=_TIMINGS)

    def start(self) -> float:
        """Start everything, and return when all but the node answers: the seconds that took. Raises EmbeddedError."""
        began = time.monotonic()
        self._stack.start()
        self._stack.wait_ready(*(name for name in self._stack.names if name not in _NODE_PARTS))
        return time.monotonic() - began

    def wait_for_node(self) -> float:
        """Return when engine and agent are ready too: the further seconds that took. Raises EmbeddedError."""
        began = time.monotonic()
        self._stack.wait_ready()
        return time.monotonic() - began

    def stop(self) -> None:
        """Stop everything. Idempotent."""
        self._stack.stop()

    @property
    def web_url(self) -> str:
        """The base URL of the API."""
        return self._stack.urls["web"]

    @property
    def gateway_url(self) -> str:
        """The base URL of the gateway, without /v1."""
        return self._stack.urls["gateway"]

    @property
    def engine_url(self) -> str:
        """The base URL of the engine, which only the agent and the gateway ask."""
        return self._stack.urls["engine"]

    @property
    def admin_token(self) -> str:
        """The token of the platform admin, as the first start wrote it down."""
        return str(json.loads(self._stack.facts.secrets.bootstrap.read_text(encoding="utf-8"))["admin_token"])

    @property
    def log_folder(self) -> Path:
        """Where each process has its log."""
        return self._stack.data / "logs"
