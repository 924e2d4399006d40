"""What releases needs from the apps above it. The app that can do it supplies it when it starts."""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from registry.actors import Actor


class PrewarmPort(Protocol):
    def __call__(self, *, actor: Actor, version_id: UUID) -> None:
        """Ask for the version to be warm on some node. A wish, not a promise: without room it stays cold."""
        ...


def leave_cold(*, actor: Actor, version_id: UUID) -> None:
    """The null twin: nothing warms versions here."""


@dataclass(slots=True)
class Ports:
    """The one holder of what was supplied."""

    prewarm: PrewarmPort = leave_cold


PORTS = Ports()
