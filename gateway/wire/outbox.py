"""What is written in one round of the loop goes out at its end, all of it together.

A write wakes whoever reads it, a few microseconds on another core, when that one sleeps. Where each write comes after
the work for one request, the other side has handled the last one and sleeps again: a fifth of a gateway's time went
into waking the same two processes. One after the other without anything between, the writes find it awake. Where a
round brings one request, there is nothing to wait for.
"""

import asyncio
import logging
from typing import Final

_log = logging.getLogger(__name__)

# So much waits for the end of a round: a slow reader has to be known as one before there is more.
_MOST_WAITING: Final = 64 * 1024
# After a round with a single one, so many go out at once before it's tried again whether others come with them.
_ALONE: Final = 16


class Outbox:
    """Has whoever put something aside in this round send it; belongs to one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, most: int) -> None:
        """At most so many wait for each other: the first one waits for the work of all."""
        self._loop = loop
        self._most = most
        self._senders: list[Sender] = []
        self._is_crowded = False
        self._alone = 0

    def lets_pass(self) -> bool:
        """Whether to send at once; asked for everything that is to be sent."""
        if self._alone:
            self._alone -= 1
            return True
        return False

    def add(self, sender: "Sender") -> None:
        """Call its `send` at the end of the round, or when enough wait."""
        self._senders.append(sender)
        if len(self._senders) == self._most:
            self._is_crowded = True
            self._send()
        elif len(self._senders) == 1:
            self._loop.call_soon(self._end_round)

    def _end_round(self) -> None:
        if len(self._senders) == 1 and not self._is_crowded:
            self._alone = _ALONE
        self._is_crowded = False
        self._send()

    def _send(self) -> None:
        senders, self._senders = self._senders, []
        for sender in senders:
            try:
                sender.send()
            except Exception:  # noqa: BLE001  what the others have put aside goes out all the same
                _log.exception("a connection takes nothing and is closed")
                sender.abort()


class Sender:
    """The writing side of a connection; those who have one inherit from it."""

    def __init__(self, outbox: Outbox) -> None:
        """Send with what else is in the outbox."""
        self._outbox = outbox
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._transport: asyncio.Transport

    def put(self, data: bytes) -> None:
        """Send it at the end of the round, after what was put before; at once if that comes to much."""
        unsent = self._unsent
        if not unsent and self._outbox.lets_pass():
            self._transport.write(data)
            return
        unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes > _MOST_WAITING:
            self.send()
        elif len(unsent) == 1:
            self._outbox.add(self)

    def send(self) -> None:
        """Send now what was put aside."""
        unsent = self._unsent
        if not unsent:
            return
        self._unsent, self._unsent_bytes = [], 0
        if self._transport.is_closing():
            return
        if len(unsent) == 1:
            self._transport.write(unsent[0])
        else:
            self._transport.writelines(unsent)

    def close(self) -> None:
        """Close the connection after what was put aside."""
        self.send()
        self._transport.close()

    def abort(self) -> None:
        """Close it at once, whatever hasn't been sent."""
        self._unsent, self._unsent_bytes = [], 0
        self._transport.abort()
