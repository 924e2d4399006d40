"""One lane per engine name: what is done with a name is done by one thread at a time, the newest command first."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Lock
from weakref import WeakSet

from workers.node.errors import SupersededError

# Lower than any generation of a command.
_NOBODY = 0


@dataclass(slots=True)
class _Lane:
    free: Condition
    is_taken: bool = False
    newest: int = _NOBODY
    inside: set[tuple[int, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Pass:
    """The right to work on a name. A newer command for the name makes it void, which long work has to look at."""

    is_void: Callable[[], bool]

    def check(self) -> None:
        """Raise `SupersededError` once a newer command waits."""
        if self.is_void():
            raise SupersededError("a newer command for the same name came")


@dataclass(slots=True, weakref_slot=True, eq=False)
class Look:
    """A moment: it gains each name for which a command was in its lane then or came later.

    What was seen of the engine in that moment says nothing of these names.
    """

    names: set[str]

    def __contains__(self, name: str) -> bool:
        return name in self.names


class Lanes:
    """Shared by all threads. A lane is there only as long as somebody is in it or waits."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lanes: dict[str, _Lane] = {}
        self._looks: WeakSet[Look] = WeakSet()

    @contextmanager
    def enter(self, name: str, *, generation: int, act: str, outranks: bool) -> Iterator[Pass | None]:
        """Wait for the name's lane and hold it.

        Args:
            name: the engine name.
            generation: of the command.
            act: what it commands; the same act of the same generation is one command, delivered twice.
            outranks: it is granted, so that older commands for the name give way to it.

        Returns:
            None when there is nothing to do: the same command is in the lane already, or a newer one came.

        """
        lane = self._join(name, (generation, act), outranks=outranks)
        if lane is None:
            yield None
        else:
            yield from self._take(name, lane, (generation, act))

    def _join(self, name: str, key: tuple[int, str], *, outranks: bool) -> _Lane | None:
        with self._lock:
            lane = self._lane(name)
            for look in self._looks:
                look.names.add(name)
            if key in lane.inside or key[0] < lane.newest:
                return None
            lane.inside.add(key)
            if outranks:
                lane.newest = max(lane.newest, key[0])
                lane.free.notify_all()
            return lane

    def _take(self, name: str, lane: _Lane, key: tuple[int, str]) -> Iterator[Pass | None]:
        generation = key[0]
        with self._lock:
            lane.free.wait_for(lambda: not lane.is_taken or generation < lane.newest)
            mine = generation >= lane.newest
            lane.is_taken = lane.is_taken or mine
        try:
            yield Pass(lambda: generation < lane.newest) if mine else None
        finally:
            with self._lock:
                lane.inside.discard(key)
                lane.is_taken = lane.is_taken and not mine
                lane.free.notify_all()
                self._leave(name, lane)

    @contextmanager
    def try_hold(self, name: str) -> Iterator[bool]:
        """Hold the lane if nobody is in it or waits; whether that worked."""
        with self._lock:
            free = name not in self._lanes
            if free:
                self._lane(name).is_taken = True
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    lane = self._lanes[name]
                    lane.is_taken = False
                    lane.free.notify_all()
                    self._leave(name, lane)

    def look(self) -> Look:
        """Begin a look; it is kept up as long as the caller keeps it."""
        with self._lock:
            look = Look(set(self._lanes))
            self._looks.add(look)
            return look

    def count(self) -> int:
        """How many names somebody works on or waits for."""
        with self._lock:
            return len(self._lanes)

    def _lane(self, name: str) -> _Lane:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = _Lane(Condition(self._lock))
        return lane

    def _leave(self, name: str, lane: _Lane) -> None:
        if not lane.inside and not lane.is_taken:
            self._lanes.pop(name, None)
