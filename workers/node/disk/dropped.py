"""Which versions the agent dropped by itself and web doesn't know of yet."""

from threading import Lock

from workers.node.disk.marks import Drop


class DropBook:
    """Shared by threads; lost with the process, as web sees by the next report what is on disk."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._drops: dict[str, Drop] = {}

    def add(self, drop: Drop) -> None:
        with self._lock:
            self._drops[drop.name] = drop

    def pending(self) -> tuple[Drop, ...]:
        with self._lock:
            return tuple(self._drops.values())

    def told(self, drops: tuple[Drop, ...]) -> None:
        """Web has accepted a report with these."""
        with self._lock:
            for drop in drops:
                if self._drops.get(drop.name) is drop:
                    del self._drops[drop.name]
