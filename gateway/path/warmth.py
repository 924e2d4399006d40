"""Whether a version can answer now."""

import time
from uuid import UUID

from gateway.nodes.fleet import Fleet
from gateway.routing.absences import Absences
from gateway.routing.choose import Miss, Places, Wish, choose
from gateway.routing.current import CurrentSnapshot

_ANY = Wish()


class Warmth:
    """Knows by the snapshot in force, and by what this process knows of the nodes."""

    def __init__(self, *, current: CurrentSnapshot, absences: Absences, fleet: Fleet, places: Places) -> None:
        """Look at these."""
        self._current = current
        self._absences = absences
        self._fleet = fleet
        self._places = places

    def is_warm(self, version_id: UUID) -> bool:
        """Whether some node can answer with the version, now or as soon as it has room."""
        snapshot = self._current.get()
        version = snapshot.versions.get(version_id)
        if version is None:
            return False
        found = self._places.of(snapshot, version)
        chosen = choose(
            found, states=self._fleet.states, wish=_ANY, now=time.monotonic(), is_absent=self._absences.covers
        )
        return chosen not in (Miss.COLD, Miss.DOWN)
