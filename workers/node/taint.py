"""Whether this life of the engine may be unsound, from a load or a probe that failed; only a restart clears it."""

import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

from workers.node.durable import read_json, write_json

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Taint:
    """Why the engine with this boot id is not trusted; `poisoned` means that all its answers may be nonsense.

    A failed load can only have left its remains in a slot: the node goes on.
    """

    boot_id: str
    reason: str
    poisoned: bool


class TaintMark:
    """One durable mark at `path`; threads share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._taint = _read(path)

    def mark(self, *, boot_id: str, reason: str, poisoned: bool) -> None:
        """Set the mark; poison of the same life stays."""
        with self._lock:
            now = self.of(boot_id)
            if now is not None and poisoned <= now.poisoned:
                return
            self._taint = Taint(boot_id, reason, poisoned)
            try:
                write_json(self._path, asdict(self._taint))
            except OSError:
                # It holds as long as this process lives; after that a probe finds out again.
                _log.exception("the mark of taint can't be kept on disk")

    def of(self, boot_id: str) -> Taint | None:
        """The mark on this life of the engine."""
        return self._taint if self._taint is not None and self._taint.boot_id == boot_id else None

    def poison(self, boot_id: str) -> str | None:
        """Why this life of the engine is poisoned, None if it isn't."""
        taint = self.of(boot_id)
        return taint.reason if taint and taint.poisoned else None


def _read(path: Path) -> Taint | None:
    try:
        value = read_json(path)
        return Taint(str(value["boot_id"]), str(value["reason"]), bool(value["poisoned"])) if value else None
    except (ValueError, KeyError):
        # The probe of the next load finds out again whether the engine is sound.
        _log.exception("the mark of taint is damaged; it begins anew")
        return None
