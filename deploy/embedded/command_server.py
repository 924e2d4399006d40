"""A process of the plan as a server: started from its spec, found healthy as the spec says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from deploy.embedded.child import Command
from deploy.embedded.health import answers_http
from deploy.embedded.server import Server
from deploy.embedded.specs import AliveHealth, CeleryHealth, HttpHealth, resolve

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deploy.embedded.output import Console
    from deploy.embedded.specs import ProcessSpec
    from deploy.embedded.warden import Warden


class CommandServer(Server):
    def __init__(
        self, spec: ProcessSpec, folder: Path, *, warden: Warden, console: Console | None, log_folder: Path
    ) -> None:
        self.name = spec.name
        self.start_seconds = spec.start_seconds
        super().__init__(folder, warden=warden, console=console, log_folder=log_folder)
        self._spec = spec
        self._probe = probe_for(spec.health)
        self._since = 0.0

    def prepare(self) -> None:
        self._spec.folder.mkdir(parents=True, exist_ok=True)
        self._since = time.monotonic()

    def command(self) -> Command:
        return Command(
            argv=self._spec.argv,
            folder=self._spec.folder,
            environment=resolve(self._spec.environment),
            stop_seconds=self._spec.stop_seconds,
        )

    def health(self) -> bool:
        return self._probe(self._since)


def probe_for(health: HttpHealth | CeleryHealth | AliveHealth) -> Callable[[float], bool]:
    """The question that this description of health stands for."""
    match health:
        case HttpHealth(url=url):
            return lambda _since: answers_http(url)
        case CeleryHealth(broker_url=broker_url, node=node):
            return lambda _since: answers_celery(broker_url, node)
        case AliveHealth(seconds=seconds):
            return lambda since: time.monotonic() - since >= seconds


def answers_celery(broker_url: str, node: str) -> bool:
    """Whether the worker answers a ping within a second."""
    with Celery(broker=broker_url, set_as_current=False) as app:
        try:
            return bool(app.control.ping(destination=[node], timeout=1.0))
        except (OperationalError, RedisError, OSError):
            return False
