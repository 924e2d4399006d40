"""Names that were unloaded: an engine may still read their files for a while, and then they may go, or not."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

from workers.node.durable import FULL, open_folder, read_json, remove, write_durably, write_json

_log = logging.getLogger(__name__)

# A later time is not worth another write when it is later by no more than this.
_SAME_S = 1.0


@dataclass(frozen=True, slots=True)
class Stone:
    """Until when (unix seconds) the files may be read, and whether they are to be deleted then."""

    until: float
    delete: bool


class Tombstones:
    """One small file per name below `folder`; survives restarts. Threads share it, each with another name.

    What a full disk has no room for holds as long as this process lives. The mark `whole` goes then, which needs no
    room: without it, the next process can't know what may be read.
    """

    def __init__(self, folder: Path, *, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._whole = folder / "whole"
        self._lock = Lock()
        open_folder(folder)
        found = {path.stem: _read(path) for path in folder.glob("lk-*.json")}
        self._stones = {name: stone for name, stone in found.items() if stone is not None}
        self._damaged = found.keys() - self._stones.keys()

    def make_whole(self, names: Iterable[str], *, grace_s: float) -> None:
        """At the start: where notes were lost, any of these names may be read for the grace; so may damaged ones'."""
        is_whole = self._whole.exists()
        for name in self._damaged if is_whole else names:
            self.bury(name, grace_s=grace_s, delete=None)
        if is_whole:
            return
        try:
            write_durably(self._whole, b"")
        except OSError:
            _log.exception("the next start has every version on disk count as just unloaded, too")

    def bury(self, engine_name: str, *, grace_s: float, delete: bool | None = True) -> None:
        """Note that the name's files may be read for `grace_s` seconds from now; an earlier note's later time holds.

        `delete` says whether they are to be deleted then; None leaves that to an earlier note, and keeps them without.
        """
        was = self._stones.get(engine_name)
        until = self._clock() + grace_s
        if delete is None:
            delete = was is not None and was.delete
        if was is not None and was.delete == delete and was.until >= until - _SAME_S:
            return
        self._write(engine_name, Stone(max(until, was.until if was else 0.0), delete))

    def spare(self, engine_name: str) -> None:
        """Keep the files after all, though they may be read as long as was noted; none there is success."""
        was = self._stones.get(engine_name)
        if was is not None and was.delete:
            self._write(engine_name, Stone(was.until, delete=False))

    def lift(self, engine_name: str) -> None:
        """Forget the name; none there is success."""
        with self._lock:
            there = self._stones.pop(engine_name, None)
        if there is not None:
            remove(self._path(engine_name))

    def now(self) -> float:
        """Unix seconds by the clock that the graces go by."""
        return self._clock()

    def may_be_read(self, engine_name: str) -> bool:
        """Whether the grace of a name goes on."""
        stone = self._stones.get(engine_name)
        return stone is not None and self._clock() < stone.until

    def due(self) -> tuple[str, ...]:
        """Names whose grace is over and whose files are to be deleted."""
        return tuple(name for name, stone in self._over() if stone.delete)

    def forget_spared(self) -> None:
        """Lift those whose grace is over and whose files stay."""
        for name, stone in self._over():
            if not stone.delete:
                self.lift(name)

    def names(self) -> tuple[str, ...]:
        """Names whose files are to be deleted, now or later."""
        with self._lock:
            return tuple(sorted(name for name, stone in self._stones.items() if stone.delete))

    def _over(self) -> tuple[tuple[str, Stone], ...]:
        now = self._clock()
        with self._lock:
            return tuple(sorted((name, stone) for name, stone in self._stones.items() if stone.until <= now))

    def _write(self, engine_name: str, stone: Stone) -> None:
        try:
            write_json(self._path(engine_name), asdict(stone))
        except OSError as error:
            if error.errno not in FULL:
                raise
            remove(self._whole)
            _log.warning("the unload of %s is not noted: the disk is full", engine_name)
        with self._lock:
            self._stones[engine_name] = stone

    def _path(self, engine_name: str) -> Path:
        return self._folder / f"{engine_name}.json"


def _read(path: Path) -> Stone | None:
    try:
        value = read_json(path)
        return Stone(float(value["until"]), bool(value["delete"])) if value else None
    except (ValueError, KeyError, TypeError):
        _log.exception("the tombstone of %s is damaged: its files stay until it is evicted again", path.stem)
        return None
