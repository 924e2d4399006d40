"""The driver's own notes of an engine that tells too little of itself: which life of it answers, what it was given.

They stand in a file, so that a restarted agent knows what its predecessor did.
"""

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from workers.node.durable import read_json, write_json
from workers.node.engines.ports import LoadedAdapter

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Page:
    """`held`: what this life of the engine was given; `wanted`: what it is to have. Names and paths."""

    life: str = ""
    mark: str = ""
    count: float = 0.0
    held: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, str] = field(default_factory=dict)


class Book:
    """Notes at `path`, for an engine of this `kind`. Threads may share it.

    `starts_with_wanted`: each start of the engine, whoever makes it, gives it what is wanted; else it starts empty.
    """

    def __init__(self, path: Path, *, kind: str, starts_with_wanted: bool = False) -> None:
        self._path = path
        self._kind = kind
        self._starts_with_wanted = starts_with_wanted
        self._guard = Lock()
        self._over = False
        self._page = _read(path)

    def observe(self, *, mark: str = "", count: float = 0.0, since: float = 0.0) -> str:
        """Note what an answering engine shows of its life; the life's id.

        Args:
            mark: something that is the same throughout one life, and seldom in two.
            count: something that never falls within one life.
            since: what `count` was before the engine was asked; other threads may have seen more by now.

        """
        with self._guard:
            page = self._page
            if not page.life or self._over or mark != page.mark or count < since:
                self._begin(mark=mark)
            self._page.count = max(self._page.count, count)
            return self._page.life

    @property
    def count(self) -> float:
        """The least that may be observed next within this life."""
        with self._guard:
            return self._page.count

    def saw(self, count: float) -> None:
        """The engine has counted at least so far by now."""
        with self._guard:
            self._page.count = max(self._page.count, count)

    def start_over(self) -> None:
        """The driver itself had the engine restarted with what is wanted: the same life goes on."""
        with self._guard:
            self._page.held, self._page.count, self._over = dict(self._page.wanted), 0.0, False
            self._write()

    @property
    def is_over(self) -> bool:
        """Whether the life that is noted has ended, and no other was seen yet."""
        with self._guard:
            return self._over

    def end_life(self) -> None:
        """The engine's process is gone: whoever answers next is another one."""
        with self._guard:
            self._over = True

    def listed(self) -> tuple[LoadedAdapter, ...]:
        """What the engine holds and is to have."""
        with self._guard:
            page = self._page
            return tuple(LoadedAdapter(name, root) for name, root in page.held.items() if page.wanted.get(name) == root)

    @property
    def wanted(self) -> dict[str, str]:
        with self._guard:
            return dict(self._page.wanted)

    def root_of(self, name: str) -> str | None:
        """The path from which the engine has this adapter, None if it isn't listed."""
        return next((adapter.root for adapter in self.listed() if adapter.name == name), None)

    def add(self, name: str, root: str) -> None:
        """The engine has taken it in."""
        with self._guard:
            self._page.held[name] = self._page.wanted[name] = root
            self._write()

    def want(self, adapters: Mapping[str, str]) -> None:
        """Note what the next start of the engine is to give it."""
        with self._guard:
            self._page.wanted = dict(adapters)
            self._write()

    def forget(self, name: str) -> None:
        """Wanted no more; the engine may hold it on."""
        with self._guard:
            if self._page.wanted.pop(name, None) is not None:
                self._write()

    def _begin(self, *, mark: str) -> None:
        wanted = self._page.wanted if self._starts_with_wanted else {}
        self._page = _Page(f"{self._kind}-{uuid.uuid4().hex[:16]}", mark, 0.0, dict(wanted), dict(wanted))
        self._over = False
        self._write()

    def _write(self) -> None:
        page = self._page
        self._path.parent.mkdir(parents=True, exist_ok=True)
        value = {"life": page.life, "mark": page.mark, "count": page.count, "held": page.held, "wanted": page.wanted}
        write_json(self._path, value)


def _read(path: Path) -> _Page:
    try:
        value = read_json(path)
        return _Page() if value is None else _page(value)
    except (ValueError, KeyError, TypeError, AttributeError):
        # Nothing is lost that a new load of what is wanted would not bring back.
        _log.exception("the notes on the engine are damaged; they begin anew")
        return _Page()


def _page(value: Mapping[str, Any]) -> _Page:
    held, wanted = ({str(name): str(root) for name, root in value[key].items()} for key in ("held", "wanted"))
    return _Page(str(value["life"]), str(value["mark"]), float(value["count"]), held, wanted)
