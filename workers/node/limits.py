"""What web lets this node do, within what the operator of the machine allows it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

MAX_DOWNLOADS = 16
# Far beyond any disk, and small enough to be computed with.
_MOST = 2**62


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that hold now; those of the operator until web says its own.

    Attributes:
        disk_bytes: budget of the disk cache; None leaves it to the free disk.
        high_water: share of the budget beyond which the agent drops what is used least.
        low_water: share of the budget down to which it drops.
        disk_ttl_s: how long files stay that nobody wants or uses; None for ever.
        scrub_bytes_per_s: how fast files on disk are read again; 0 does without.
        concurrent_downloads: streams at the same time.
        origin_timeout_s: how long the store may send nothing.
        guaranteed: names whose files make room for nobody else's.
        expendable: names whose files go first when the disk is short, in this order; then what is used least.

    """

    disk_bytes: int | None = None
    high_water: float = 0.95
    low_water: float = 0.85
    disk_ttl_s: float | None = None
    scrub_bytes_per_s: float = 8 * 2**20
    concurrent_downloads: int = 4
    origin_timeout_s: float = 30.0
    guaranteed: frozenset[str] = frozenset()
    expendable: tuple[str, ...] = ()


class LimitsBook:
    """`now` is what holds; threads read it while the heartbeat replaces it."""

    def __init__(self, own: Limits) -> None:
        self._own = own
        self.now = own

    def take(self, told: object) -> None:
        """Heed what web says: each number that makes sense, within the operator's; the rest stays as it is.

        Raises:
            ValueError: something there makes no sense; nothing of it is heeded then.

        """
        if told is None:
            return
        if not isinstance(told, Mapping):
            raise ValueError("limits must be an object")  # noqa: TRY004  # a wrong content, not a wrong argument
        guaranteed = _names(told, "guaranteed", otherwise=tuple(self.now.guaranteed))
        expendable = _names(told, "expendable", otherwise=self.now.expendable)
        limits = _bounded(self._own, _read(told, self._own))
        self.now = replace(limits, guaranteed=frozenset(guaranteed), expendable=expendable)


def _read(told: Mapping[str, Any], own: Limits) -> Limits:
    changes: dict[str, Any] = {
        name: read
        for name, low, high in (
            ("disk_bytes", 1, _MOST),
            ("high_water", 0, 1),
            ("low_water", 0, 1),
            ("disk_ttl_s", 0, _MOST),
            ("scrub_bytes_per_s", 0, _MOST),
            ("concurrent_downloads", 1, _MOST),
            ("origin_timeout_s", 1, 3600),
        )
        if (read := _number(told.get(name), name, low, high)) is not None
    }
    limits = replace(own, **changes)
    if limits.low_water >= limits.high_water:
        raise ValueError("low_water must be below high_water")
    return limits


def _names(told: Mapping[str, Any], key: str, *, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    value = told.get(key)
    if value is None:
        return otherwise
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{key} must be a list of names")
    return tuple(value)


def _number(value: object, name: str, low: float, high: float) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low} to {high}")
    return value


def _bounded(own: Limits, told: Limits) -> Limits:
    budgets = [int(budget) for budget in (own.disk_bytes, told.disk_bytes) if budget is not None]
    return replace(
        told,
        disk_bytes=min(budgets, default=None),
        concurrent_downloads=min(int(told.concurrent_downloads), MAX_DOWNLOADS),
    )
