"""Names that were unloaded and whose files are to be deleted later: an engine may still read them for a while."""

import logging
from collections.abc import Callable
from pathlib import Path

from workers.node.durable import read_json, remove, write_json

_log = logging.getLogger(__name__)


class Tombstones:
    """One file per name below `folder` with the time (unix seconds) after which its files may go; survives restarts."""

    def __init__(self, folder: Path, *, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        folder.mkdir(parents=True, exist_ok=True)

    def bury(self, engine_name: str, *, grace_s: float) -> None:
        """Its files may go in `grace_s` seconds; an earlier tombstone is kept if its time is later."""
        due = max(self._clock() + grace_s, self._due(engine_name) or 0.0)
        write_json(self._path(engine_name), {"delete_after": due})

    def lift(self, engine_name: str) -> None:
        """Keep the files after all; no tombstone there is success."""
        remove(self._path(engine_name))

    def due(self) -> tuple[str, ...]:
        """Names whose grace is over."""
        now = self._clock()
        return tuple(name for name in self.names() if (time := self._due(name)) is not None and time <= now)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self._folder.glob("lk-*.json")))

    def _due(self, engine_name: str) -> float | None:
        try:
            value = read_json(self._path(engine_name))
            return float(value["delete_after"]) if value else None
        except (ValueError, KeyError, TypeError):
            _log.exception(
                "the tombstone of %s is damaged: the files stay until the name is evicted again", engine_name
            )
            return None

    def _path(self, engine_name: str) -> Path:
        return self._folder / f"{engine_name}.json"
