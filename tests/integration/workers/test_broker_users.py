"""The broker user that docs/nodes.md gives a node: enough for its agent, and for nothing else."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery
from kombu import Queue

from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.valkey import ValkeyServer
from workers.node.app import create_app, reclaim_commands

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "nodes.md"
SECRET = "node-secret"


@dataclass(frozen=True)
class NodeSettings:
    """What the agent's application reads of its settings."""

    broker_url: str
    queue: str = "node.n1"


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path / "valkey", port=free_port(), password="root-secret")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def settings(valkey: ValkeyServer) -> NodeSettings:
    """Of the node ``n1``, whose user was made as the document says."""
    [rule] = [line for line in DOCUMENT.read_text().splitlines() if line.strip().startswith("ACL SETUSER")]
    words = [word.replace("SECRET", SECRET).encode().decode("unicode_escape") for word in shlex.split(rule)]
    with redis.Redis(port=valkey.port, password="root-secret") as root:
        assert root.execute_command(*words)
    return NodeSettings(f"redis://node-n1:{SECRET}@{LOOPBACK}:{valkey.port}/0")


def take_one(app: Celery, queue: str) -> Any:
    """Take one command off the queue as a worker does, and acknowledge it."""
    taken: list[Any] = []
    with app.connection_for_read() as connection:

        def take(body: Any, message: Any) -> None:
            message.ack()
            taken.append(body[1]["command"])

        with connection.Consumer([Queue(queue, routing_key=queue)], callbacks=[take], accept=["json"]):
            while not taken:
                connection.drain_events(timeout=5)
    return taken[0]


def test_a_nodes_own_user_takes_its_commands(valkey: ValkeyServer, settings: NodeSettings) -> None:
    app = create_app(settings)  # type: ignore[arg-type]  # no more of the settings is read
    reclaim_commands(app)
    with Celery("control", broker=valkey.url, set_as_current=False) as control:
        control.send_task("node.warm", kwargs={"command": {"generation": 1}}, queue="node.n1")
    assert take_one(app, "node.n1") == {"generation": 1}
    app.close()
    with redis.Redis(port=valkey.port, password="root-secret") as root:
        assert [entry["object"] for entry in root.acl_log()] == []
        assert root.hlen("node.n1.unacked") == 0


def test_a_nodes_own_user_may_touch_nothing_else(settings: NodeSettings) -> None:
    forbidden: list[tuple[Any, ...]] = [
        ("LRANGE", "node.n2", 0, -1),
        ("LPUSH", "node.n2", "x"),
        ("LPUSH", "control", "x"),
        ("HGETALL", "node.n2.unacked"),
        ("DEL", "node.n12"),
        ("KEYS", "*"),
        ("FLUSHALL",),
        ("CONFIG", "GET", "requirepass"),
        ("SUBSCRIBE", "anything"),
    ]
    with redis.Redis.from_url(settings.broker_url) as node:
        for words in forbidden:
            with pytest.raises(redis.exceptions.NoPermissionError):
                node.execute_command(*words)
