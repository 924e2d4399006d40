"""What the snapshot says is loaded although an engine has just shown that it isn't.

A local, short-lived overlay: an engine that was restarted or can't be reached is passed over until the control plane
has said something new about that residency, or until it's worth another try.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from gateway.routing.snapshot import Residency

_Key = tuple[str, UUID]  # node and version

_SWEEP_ABOVE: Final = 1000


@dataclass(frozen=True, slots=True)
class _Absence:
    residency: Residency
    until: float


class Absences:
    """The (node, version) pairs that are passed over for now."""

    def __init__(self, *, lasts_s: float = 2.0, clock: Callable[[], float] = time.monotonic) -> None:
        """Pass a residency over for `lasts_s` seconds after each mark."""
        self._lasts_s = lasts_s
        self._clock = clock
        self._marked: dict[_Key, _Absence] = {}

    def mark(self, residency: Residency) -> None:
        """The engine has just disowned this residency."""
        now = self._clock()
        if len(self._marked) > _SWEEP_ABOVE:
            self._marked = {key: absence for key, absence in self._marked.items() if absence.until > now}
        self._marked[residency.node, residency.version_id] = _Absence(residency, now + self._lasts_s)

    def covers(self, residency: Residency) -> bool:
        """Whether to pass this residency over: marked lately, and unchanged in the snapshot since."""
        if not self._marked:
            return False
        absence = self._marked.get((residency.node, residency.version_id))
        return absence is not None and absence.residency == residency and self._clock() < absence.until
