"""The sections of a policy document that speak of tenants: classes of service, pins, pre-warming, quotas."""

import re
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field, field_validator, model_validator

from registry.documents.values import MOST, AliasName, Name, NonNegative, Positive, Section, Share, VersionName, Whole

_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_WEEK: Final = 7
# One an hour at least: what was begun longer ago is not looked back to.
LoadsPerMinute = Annotated[float, Field(ge=1 / 60, le=MOST)]


class OnCold(StrEnum):
    """What a gateway does with a request whose version is loaded nowhere."""

    WAIT = "wait"
    STABLE = "stable"
    BASE = "base"
    REFUSE = "refuse"


class SlaClass(Section):
    """``priority_weight`` counts in the scores; ``wait_s`` is how long a request waits for a cold version.

    ``on_cold`` is what happens to such a request: ``wait`` for the load, let the ``stable`` version answer for a
    candidate or the ``base`` model for the adapter, or ``refuse`` it. ``token_ms`` is how long a token may take (null:
    nothing is promised); a node where one more request would break that is chosen last.
    """

    priority_weight: Annotated[int, Field(ge=1, le=64)] = 1
    wait_s: NonNegative = 30.0
    on_cold: OnCold = OnCold.WAIT
    token_ms: Positive | None = None


class TenantSettings(Section):
    sla: Name


class Pin(Section):
    """A version that is never evicted: the one that an alias points to, or one by its name."""

    tenant: Name
    adapter: Name
    alias: AliasName | None = None
    version: VersionName | None = None

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.alias is None) == (self.version is None):
            raise ValueError("a pin names either an alias or a version")
        return self


class Day(StrEnum):
    """In the order of ``datetime.weekday``."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


class ScheduledPrewarm(Section):
    """At this time of these days (UTC), the version that the alias points to is brought into an engine."""

    at: str
    days: Annotated[tuple[Day, ...], Field(min_length=1, max_length=_WEEK)] = tuple(Day)
    tenant: Name
    adapter: Name
    alias: AliasName

    @field_validator("at")
    @classmethod
    def _on_the_clock(cls, value: str) -> str:
        if not _CLOCK.fullmatch(value):
            raise ValueError('is a time of day in UTC, such as "07:30"')
        return value

    def last_due(self, now: datetime) -> datetime:
        """The latest time up to ``now`` at which this was due."""
        clock, today = time.fromisoformat(self.at), now.astimezone(UTC).date()
        days = tuple(Day)
        passed = (datetime.combine(today - timedelta(days=back), clock, UTC) for back in range(_WEEK + 1))
        return next(each for each in passed if each <= now and days[each.weekday()] in self.days)


class Prewarm(Section):
    """What is loaded before anybody asks for it.

    ``on_release``: what aliases send requests to, once they have been moved; ``predicted``: what is likely to be asked
    for soon, where room is free.
    """

    on_release: bool = True
    predicted: bool = False
    schedule: Annotated[tuple[ScheduledPrewarm, ...], Field(max_length=1000)] = ()


class Bounds(Section):
    """``floor`` is guaranteed (lent to others while unused), above ``ceiling`` a tenant evicts only itself."""

    floor: Whole = 0
    ceiling: Whole | None = None

    @model_validator(mode="after")
    def _floor_below_ceiling(self) -> Self:
        if self.ceiling is not None and self.floor > self.ceiling:
            raise ValueError(f"floor ({self.floor}) is above ceiling ({self.ceiling})")
        return self


class TenantQuota(Section):
    """A tenant's part of all nodes of the base model together; ``queue_share`` is of the pool's load queue."""

    gpu_slots: Bounds = Field(default_factory=Bounds)
    cpu_mb: Bounds = Field(default_factory=Bounds)
    disk_mb: Bounds = Field(default_factory=Bounds)
    loads_per_minute: LoadsPerMinute | None = None
    queue_share: Share | None = None

    @property
    def floors(self) -> dict[str, int]:
        """The guarantees by key."""
        found = {"gpu_slots": self.gpu_slots, "cpu_mb": self.cpu_mb, "disk_mb": self.disk_mb}
        return {key: bounds.floor for key, bounds in found.items()}


class QuotaSection(Section):
    """``default`` is for every tenant that ``tenants`` doesn't name; an entry there replaces it whole."""

    default: TenantQuota = Field(default_factory=TenantQuota)
    tenants: Annotated[dict[Name, TenantQuota], Field(max_length=10_000)] = Field(default_factory=dict)

    @field_validator("default")
    @classmethod
    def _guarantees_have_names(cls, value: TenantQuota) -> TenantQuota:
        for key, floor in value.floors.items():
            if floor:
                raise ValueError(f"{key}.floor: guarantees are given by name (quotas.tenants), not to everybody")
        return value


def default_sla_classes() -> dict[str, SlaClass]:
    return {
        "standard": SlaClass(priority_weight=1),
        "premium": SlaClass(priority_weight=2),
        "critical": SlaClass(priority_weight=4),
    }
