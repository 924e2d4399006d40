"""Requests whose version is loaded, but on nodes that have their slots full of other versions in flight.

They wait here until a node has room: a version at a time, tenants in turn. Versions that are asked for all the time
would never leave their slots, so who has waited for a while claims a node: nobody else's request goes there before its
own.
"""

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from gateway.errors import NoSlotInTime
from gateway.waiting.room import Waiter, WaitingRoom

_PATIENCE_S = 0.5
_LOOK_S = 0.25
_RETRY_AFTER_S = 2


class _Line:
    """Those who wait for one version. `room` names the node that has room for it now, if one has."""

    __slots__ = ("nodes", "room", "since", "tenant", "version_id", "waiters")

    def __init__(self, version_id: UUID, tenant: str, room: Callable[[], bool], nodes: tuple[str, ...]) -> None:
        self.version_id = version_id
        self.tenant = tenant
        self.room = room
        self.nodes = nodes
        self.since = time.monotonic()
        self.waiters: dict[Waiter, None] = {}


class Crowd:
    """The lines of versions that wait for a slot."""

    def __init__(self, room: WaitingRoom) -> None:
        """Count who waits in `room`."""
        self._room = room
        self._lines: dict[UUID, _Line] = {}
        self._claims: dict[str, UUID] = {}
        self._looks: asyncio.TimerHandle | None = None
        self._is_called = False

    @property
    def has_claims(self) -> bool:
        """Whether any node is claimed."""
        return bool(self._claims)

    def keeps_out(self, node: str, version_id: UUID | None) -> bool:
        """Whether the node is claimed by another version that has waited for it; a base model (None) takes no slot."""
        claim = self._claims.get(node)
        return claim is not None and version_id is not None and claim != version_id

    async def wait(
        self,
        version_id: UUID,
        *,
        tenant: str,
        arrived: float,
        longest_s: float,
        nodes: tuple[str, ...],
        has_room: Callable[[], bool],
        is_wanted: Callable[[], bool],
    ) -> None:
        """Return when one of `nodes` may have room, or when `is_wanted` says that the version isn't wanted any more.

        `has_room` says whether one has. Raises NoSlotInTime `longest_s` seconds after `arrived` (of the monotonic
        clock), TooManyWaiting, and whatever `is_wanted` raises.
        """
        waiter = Waiter(tenant, arrived=arrived, until=arrived + longest_s, is_wanted=is_wanted, gate=self._room.gate)
        self._room.enter(waiter)
        line = self._lines.get(version_id)
        if line is None:
            line = self._lines[version_id] = _Line(version_id, tenant, has_room, nodes)
        line.waiters[waiter] = None
        waiter.end_at(waiter.until, _not_in_time)
        self._look_later()
        try:
            await waiter.done
        finally:
            self._room.leave(waiter)
            line.waiters.pop(waiter, None)
            if not line.waiters:
                self._close(line)

    def call(self) -> None:
        """A node has given up a slot: let somebody look for it soon."""
        if self._lines and not self._is_called:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look_later(self) -> None:
        """A call may be missed, a node come back: so look by the clock too, while anybody waits."""
        if self._looks is None:
            self._looks = asyncio.get_running_loop().call_later(_LOOK_S, self._look_by_clock)

    def _look_by_clock(self) -> None:
        self._looks = None
        for line in tuple(self._lines.values()):
            for waiter in tuple(line.waiters):
                waiter.look()
        self._claim()
        self._look()
        if self._lines:
            self._look_later()

    def _look(self) -> None:
        """Let the first line go that finds room. Its requests take the slot; the next one freed calls again.

        Its claim holds until they have come to it: else a request that comes before them would take the slot.
        """
        self._is_called = False
        for line in tuple(self._lines.values()):
            if line.room():
                del self._lines[line.version_id]
                for waiter in line.waiters:
                    waiter.settle()
                self._put_last(line.tenant)
                return

    def _put_last(self, tenant: str) -> None:
        """Let the tenant's other lines come after everybody else's."""
        for line in [line for line in self._lines.values() if line.tenant == tenant]:
            self._lines[line.version_id] = self._lines.pop(line.version_id)

    def _claim(self) -> None:
        """Who has waited long enough claims a node, if one of its own isn't claimed yet."""
        oldest = time.monotonic() - _PATIENCE_S
        for line in self._lines.values():
            if line.since <= oldest and line.version_id not in self._claims.values():
                free = next((node for node in line.nodes if node not in self._claims), None)
                if free is not None:
                    self._claims[free] = line.version_id

    def _close(self, line: _Line) -> None:
        if self._lines.get(line.version_id) is line:
            del self._lines[line.version_id]
        for node in [node for node, version_id in self._claims.items() if version_id == line.version_id]:
            del self._claims[node]


def _not_in_time() -> NoSlotInTime:
    message = "This model is loaded, but other models kept all slots busy. Try again."
    return NoSlotInTime(message, retry_after_s=_RETRY_AFTER_S)
