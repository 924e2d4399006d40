"""``python -m tests.e2e.gateway_in_time AHEAD …``: the gateway, on clocks that are so many seconds ahead and can jump.

Each line on standard input is a number of seconds by which time jumps; it's answered by a line when it has. All clocks
by which a gateway judges jump together: the event loop's, so that whatever sleeps wakes as it would have in that time
(asyncio's loop, since uvloop's looks at the kernel's clock by itself), the ages of what it knows, and the time of day.
"""

import sys
import threading
import time
from datetime import datetime, timedelta, tzinfo
from importlib import import_module

import uvicorn.config

_LOOPS = uvicorn.config.LOOP_FACTORIES
# Those that ask for the time of day.
_READERS = ("gateway.service", "gateway.trace", "gateway.shadow.mirror")


class Clocks:
    """The real ones, and how far ahead the gateway's are."""

    def __init__(self, ahead_s: float) -> None:
        self.ahead_s = ahead_s
        self._monotonic, self._time = time.monotonic, time.time

    def monotonic(self) -> float:
        return self._monotonic() + self.ahead_s

    def time(self) -> float:
        return self._time() + self.ahead_s

    def day(self) -> type[datetime]:
        """In place of `datetime` in the modules that ask it for now; what it gives are plain ones."""
        clocks = self

        class Ahead(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                return datetime.now(tz) + timedelta(seconds=clocks.ahead_s)

        return Ahead

    def jump(self) -> None:
        """As standard input says, until it ends."""
        for line in sys.stdin:
            self.ahead_s += float(line)
            print("there", flush=True)


def main(ahead_s: float, arguments: list[str]) -> None:
    clocks = Clocks(ahead_s)
    # Before the gateway is imported: some of it takes the clock itself as a default.
    time.monotonic, time.time = clocks.monotonic, clocks.time
    _LOOPS["uvloop"] = _LOOPS["asyncio"]
    for name in _READERS:
        vars(import_module(name))["datetime"] = clocks.day()
    threading.Thread(target=clocks.jump, daemon=True).start()
    import_module("gateway.__main__").main(arguments)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
