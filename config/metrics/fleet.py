"""The figures of the fleet for whoever asks for metrics, read from the database at most every few seconds."""

import logging
import time
from collections.abc import Iterator
from datetime import timedelta
from threading import Lock
from typing import Final

from django.conf import settings
from django.db import DatabaseError, connection
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cachecontrol.metrics import FleetFigures, families
from cachecontrol.services.figures import FigureReader
from config.metrics.process import process_registry

_log = logging.getLogger(__name__)
_KEEP_S: Final = 10.0


class FleetCollector(Collector):
    """Threads share it: one reads, the others wait and take the same. Without a database it says so, no more."""

    def __init__(self, reader: FigureReader, *, most: int, keep_s: float = _KEEP_S, closes: bool = False) -> None:
        """Keep figures for ``keep_s``; ``closes`` the database connection of a thread that lives for one answer."""
        self._reader = reader
        self._closes = closes
        self._most = most
        self._keep_s = keep_s
        self._lock = Lock()
        self._figures: FleetFigures | None = None
        self._read_at = -keep_s

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            if time.monotonic() - self._read_at >= self._keep_s:
                self._figures = self._read()
                self._read_at = time.monotonic()
            figures = self._figures
        yield GaugeMetricFamily(
            "lorekeeper_fleet_figures_up",
            "Whether the figures of the fleet could be read from the database.",
            value=0 if figures is None else 1,
        )
        if figures is not None:
            yield from families(figures, most=self._most)

    def _read(self) -> FleetFigures | None:
        try:
            return self._reader.read()
        except DatabaseError as error:
            _log.warning("the figures of the fleet could not be read: %s", error)
            return None
        finally:
            if self._closes:
                connection.close()


def make_registry(*, closes: bool = False) -> CollectorRegistry:
    """What a page of web or of a worker says: the processes' own figures and those of the fleet."""
    registry, most = process_registry(), settings.METRICS_LABELS
    reader = FigureReader(window=timedelta(seconds=settings.METRICS_WINDOW_S), most=most)
    registry.register(FleetCollector(reader, most=most, closes=closes))
    return registry
