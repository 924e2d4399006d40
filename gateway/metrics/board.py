"""A process's figures among those of the others: put on its page now and then, added up when somebody asks."""

import asyncio
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from uuid import UUID

from gateway.metrics.counts import Counts, Figures, added, read_figures, write_figures
from gateway.metrics.exposition import exposition
from gateway.metrics.pages import Pages

_EVERY_S = 2.0


class Board:
    """Figures of this process and, where it shares the port, of the others."""

    def __init__(
        self,
        *,
        token: str,
        adapter_of: Callable[[UUID], str | None],
        gauges: Callable[[], Mapping[str, float]],
        breakers: Callable[[], Mapping[str, str]],
        place: tuple[int, Pages] | None = None,
    ) -> None:
        """Only who knows `token` may see them; nobody if it's empty."""
        self._token = token.encode()
        self._adapter_of = adapter_of
        self._gauges = gauges
        self._breakers = breakers
        self._place = place
        self.counts = Counts(None if place is None else read_figures(place[1].read(place[0])))

    def may_be_seen_by(self, authorization: str | None) -> bool:
        """Whether the header holds the token. The page names all tenants."""
        scheme, _, text = (authorization or "").partition(" ")
        return (
            bool(self._token) and scheme.lower() == "bearer" and hmac.compare_digest(text.strip().encode(), self._token)
        )

    async def run(self) -> None:
        """Tell the others until cancelled."""
        while True:
            if self._place is not None:
                self._place[1].write(self._place[0], write_figures(self._own()))
            await asyncio.sleep(_EVERY_S)

    def page(self, accept: str) -> tuple[bytes, bytes]:
        """What Prometheus gets, and its content type: this process as it is, the others as of some seconds ago."""
        others = [] if self._place is None else self._place[1].others(self._place[0])
        told = [figures for figures in map(read_figures, others) if figures is not None]
        return exposition(added([self._own(), *told]), accept=accept)

    def _own(self) -> Figures:
        return self.counts.figures(
            now=datetime.now(UTC),
            adapter_of=self._adapter_of,
            gauges=dict(self._gauges()),
            breakers=dict(self._breakers()),
        )
