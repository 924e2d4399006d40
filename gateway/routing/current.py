"""The snapshot in force, and the way to wait for the next one."""

import asyncio
import time
from uuid import UUID

from gateway.errors import NotReady
from gateway.routing.snapshot import RoutingSnapshot


class CurrentSnapshot:
    """Holds the newest snapshot; belongs to one event loop."""

    def __init__(self) -> None:
        """Begin without a snapshot."""
        self._snapshot: RoutingSnapshot | None = None
        self._confirmed_at: float | None = None
        self._change: asyncio.Future[None] | None = None
        self._revoked: set[UUID] = set()
        self.wanted = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether there is a snapshot to serve from."""
        return self._snapshot is not None

    @property
    def age_s(self) -> float | None:
        """Seconds since the snapshot was last read from the database, changed or not."""
        return None if self._confirmed_at is None else time.monotonic() - self._confirmed_at

    def get(self) -> RoutingSnapshot:
        """The snapshot in force; raises NotReady while there is none."""
        if self._snapshot is None:
            message = "The gateway is starting and has no routing data yet."
            raise NotReady(message, retry_after_s=1)
        return self._snapshot

    def publish(self, snapshot: RoutingSnapshot) -> None:
        """Put a freshly read snapshot in force; waiters wake only if it says something new."""
        self._confirmed_at = time.monotonic()
        # A read that began before a revocation doesn't know of it; one that began after it needs no reminder.
        self._revoked = {version_id for version_id in self._revoked if snapshot.serves(version_id)}
        self._put_in_force(snapshot.revoking(self._revoked))

    def revoke(self, version_id: UUID) -> None:
        """Serve a version no more, at once and before everything is read again. It never comes back."""
        self._revoked.add(version_id)
        if self._snapshot is not None:
            self._put_in_force(self._snapshot.revoking(self._revoked))

    def _put_in_force(self, snapshot: RoutingSnapshot) -> None:
        if snapshot == self._snapshot:
            return
        self._snapshot = snapshot
        if self._change is not None and not self._change.done():
            self._change.set_result(None)
        self._change = None

    def change(self) -> asyncio.Future[None]:
        """A future, shared by all who wait, that is done when another snapshot comes in force. Don't cancel it."""
        if self._change is None:
            self._change = asyncio.get_running_loop().create_future()
        return self._change

    def refresh(self) -> None:
        """Ask for a read soon, without waiting for a notification or the next poll."""
        self.wanted.set()
