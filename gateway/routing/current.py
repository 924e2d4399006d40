"""The snapshot in force, and the way to wait for the next one."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from gateway.errors import NotReady
from gateway.routing.snapshot import Residency, RoutingSnapshot


@dataclass(frozen=True, slots=True)
class _Told:
    """What was read of one version by itself, and when."""

    read_at: float
    residencies: tuple[Residency, ...]


class CurrentSnapshot:
    """Holds the newest snapshot; belongs to one event loop."""

    def __init__(self) -> None:
        """Begin without a snapshot."""
        self._snapshot: RoutingSnapshot | None = None
        self._is_of_database = False
        self._confirmed_at: float | None = None
        self._change: asyncio.Future[None] | None = None
        self._revoked: set[UUID] = set()
        self._told: dict[UUID, _Told] = {}
        self._hurried: set[UUID] = set()
        self.wanted = asyncio.Event()
        self.hurry_wanted = asyncio.Event()
        self.revocation = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether there is a snapshot to serve from."""
        return self._snapshot is not None

    @property
    def source(self) -> Literal["database", "disk"] | None:
        """Where the snapshot comes from: from `disk` until the database was reached for the first time."""
        if self._snapshot is None:
            return None
        return "database" if self._is_of_database else "disk"

    @property
    def age_s(self) -> float | None:
        """Seconds since the snapshot was last read from the database, changed or not, by whatever process."""
        return None if self._confirmed_at is None else time.monotonic() - self._confirmed_at

    def get(self) -> RoutingSnapshot:
        """The snapshot in force; raises NotReady while there is none."""
        if self._snapshot is None:
            message = "The gateway is starting and has no routing data yet."
            raise NotReady(message, retry_after_s=1)
        return self._snapshot

    def peek(self) -> RoutingSnapshot | None:
        """The snapshot in force, if there is one."""
        return self._snapshot

    def publish(self, snapshot: RoutingSnapshot, *, read_at: float | None = None) -> None:
        """Put a snapshot in force that was read at that time (now, if none is given) of the monotonic clock.

        Waiters wake only if it says something new. What was told of single versions since then stays in force.
        """
        self._confirmed_at, self._is_of_database = time.monotonic(), True
        since = self._confirmed_at if read_at is None else read_at
        self._told = {version_id: told for version_id, told in self._told.items() if told.read_at > since}
        snapshot = snapshot.with_residencies({version_id: told.residencies for version_id, told in self._told.items()})
        # A read that began before a revocation doesn't know of it; one that began after it needs no reminder.
        self._revoked = {version_id for version_id in self._revoked if snapshot.serves(version_id)}
        self._put_in_force(snapshot.revoking(self._revoked))

    def start_from(self, kept: RoutingSnapshot, *, age_s: float) -> None:
        """Serve from what a process kept that many seconds ago, unless something was read from the database."""
        if self._snapshot is None:
            self._confirmed_at = time.monotonic() - age_s
            self._put_in_force(kept.revoking(self._revoked))

    def revoke(self, version_id: UUID) -> None:
        """Serve a version no more, at once and before anything is read again. It never comes back."""
        self._revoked.add(version_id)
        self.revocation.set()
        if self._snapshot is not None:
            self._put_in_force(self._snapshot.revoking(self._revoked))

    def tell(self, residencies: Mapping[UUID, tuple[Residency, ...]], *, read_at: float) -> None:
        """Where these versions are, read by itself at that time; in force at once, if there is a snapshot already."""
        self._told |= {version_id: _Told(read_at, found) for version_id, found in residencies.items()}
        if self._snapshot is not None:
            self._put_in_force(self._snapshot.with_residencies(residencies))

    def _put_in_force(self, snapshot: RoutingSnapshot) -> None:
        is_news = snapshot != self._snapshot
        self._snapshot = snapshot
        if not is_news:
            return
        if self._change is not None and not self._change.done():
            self._change.set_result(None)
        self._change = None

    def change(self) -> asyncio.Future[None]:
        """A future, shared by all who wait, that is done when another snapshot comes in force. Don't cancel it."""
        if self._change is None:
            self._change = asyncio.get_running_loop().create_future()
        return self._change

    def refresh(self) -> None:
        """Ask for a read soon, without waiting for the next poll."""
        self.wanted.set()

    def hurry(self, version_id: UUID) -> None:
        """Ask for a read of this one version's residencies at once."""
        self._hurried.add(version_id)
        self.hurry_wanted.set()

    def take_hurried(self) -> tuple[UUID, ...]:
        """The versions to read now."""
        hurried, self._hurried = tuple(self._hurried), set()
        self.hurry_wanted.clear()
        return hurried
