"""A node that loads at once: takes commands off its queue and tells how they ended, as an agent does."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import httpx
import redis


@dataclass(slots=True)
class InstantNode(threading.Thread):
    """Keeps when each command came and when its outcome was taken in, by engine name."""

    broker_url: str
    queue: str
    web_url: str
    token: str
    commands: dict[str, float] = field(default_factory=dict)
    told: dict[str, float] = field(default_factory=dict)
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super(InstantNode, self).__init__(daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        broker = redis.Redis.from_url(self.broker_url)
        headers = {"authorization": f"Bearer {self.token}"}
        with httpx.Client(base_url=self.web_url, headers=headers, trust_env=False, timeout=10) as web:
            while not self.stopped.is_set():
                taken = broker.brpop([self.queue], timeout=1)
                if taken is not None:
                    self._act(json.loads(taken[1]), web)
        broker.close()

    def _act(self, message: dict[str, Any], web: httpx.Client) -> None:
        now = time.monotonic()
        task, (_args, kwargs, _embed) = message["headers"]["task"], _body_of(message)
        command = kwargs["command"]
        name = command["engine_name"]
        outcome = {"node.warm": "loaded", "node.fetch": "on_disk"}.get(task, _after_evict(command))
        if task == "node.warm":
            self.commands[name] = now
        body = {"engine_name": name, "generation": command["generation"], "outcome": outcome, "timings_ms": {"load": 1}}
        began = time.monotonic()
        web.post("/api/v1/node/outcomes", json=body).raise_for_status()
        if task == "node.warm":
            self.told[name] = began


def _after_evict(command: dict[str, Any]) -> str:
    return "on_disk" if command.get("to") == "disk" else "evicted"


def _body_of(message: dict[str, Any]) -> list[Any]:
    import base64  # noqa: PLC0415  only here

    body: list[Any] = json.loads(base64.b64decode(message["body"]))
    return body
