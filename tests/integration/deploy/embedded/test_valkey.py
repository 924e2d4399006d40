import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from deploy.embedded.ports import LOOPBACK, free_port
from deploy.embedded.valkey import ValkeyServer


@pytest.fixture
def server(folder: Path) -> Iterator[ValkeyServer]:
    with ValkeyServer(folder / "valkey", port=free_port(), password="right-word") as made:
        yield made


def test_it_answers_only_to_its_password(server: ValkeyServer) -> None:
    with redis.Redis.from_url(server.url) as client:
        assert client.ping()
    with (
        redis.Redis(host=LOOPBACK, port=server.port, retry=Retry(NoBackoff(), 0)) as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()


def test_the_password_is_not_on_the_command_line(server: ValkeyServer) -> None:
    assert b"right-word" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()


def test_queued_messages_survive_sigkill_and_a_new_start(server: ValkeyServer) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.lpush("control", "message")
    server.kill()
    assert server.wait() == -signal.SIGKILL
    server.launch()
    with redis.Redis.from_url(server.url) as client:
        assert client.lrange("control", 0, -1) == [b"message"]


def test_queued_messages_survive_a_stop(server: ValkeyServer) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.lpush("control", "message")
    server.restart()
    with redis.Redis.from_url(server.url) as client:
        assert client.lrange("control", 0, -1) == [b"message"]
