"""What the stack's database tells a gateway: the routing data as a gateway reads it, and the moments of commits."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from deploy.embedded.postgres import SUPERUSER, PostgresServer
from deploy.embedded.stack import Stack
from gateway.database import connect
from gateway.routing.reading import read_snapshot
from gateway.routing.snapshot import RoutingSnapshot
from gateway.routing.source import CHANNEL

_LOOK_S = 0.2


def superuser_url(stack: Stack) -> str:
    postgres = stack.server("postgres")
    assert isinstance(postgres, PostgresServer)
    return postgres.url(SUPERUSER)


def execute(stack: Stack, statement: str, *values: object) -> list[tuple[object, ...]]:
    """Past the API, but not past what the database itself does at each change."""
    with psycopg.connect(superuser_url(stack)) as connection:
        cursor = connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []


def routing_data(stack: Stack) -> RoutingSnapshot:
    """What the gateway's own role reads now."""

    async def read() -> RoutingSnapshot:
        async with await connect(stack.env_for("gateway")["LOREKEEPER_GATEWAY_DB_URL"], purpose="test") as opened:
            await opened.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            return (await read_snapshot(opened)).snapshot

    return asyncio.run(read())


@dataclass(slots=True)
class Commits:
    """When the database told of commits, by `time.monotonic`, with what it said."""

    told: list[tuple[float, str]] = field(default_factory=list)

    def moment_of(self, act: Callable[[], object], saying: str) -> float:
        """Do ``act``; when the commit in it was told of with a word that begins so, at the latest when it returned."""
        began = time.monotonic()
        act()
        ended = time.monotonic()
        return min([at for at, said in self.told if at >= began and said.startswith(saying)], default=ended)


@contextmanager
def commits_heard(stack: Stack) -> Iterator[Commits]:
    """Listen as gateways do while in the block."""
    commits, over, listening = Commits(), threading.Event(), threading.Event()

    def listen() -> None:
        with psycopg.connect(superuser_url(stack), autocommit=True) as connection:
            connection.execute(f"LISTEN {CHANNEL}".encode())
            listening.set()
            while not over.is_set():
                for note in connection.notifies(timeout=_LOOK_S):
                    commits.told.append((time.monotonic(), note.payload))

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    assert listening.wait(10)
    try:
        yield commits
    finally:
        over.set()
        listener.join()
