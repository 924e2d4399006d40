"""A version in an engine as decisions see it, and whether it may be asked to leave. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from cachecontrol.placement.ranks import RankLoad
from cachecontrol.quotas import Holding, Resource
from cachecontrol.scoring.facts import Facts

MIB: Final = 2**20


class Kept(StrEnum):
    """Why a version may not be a victim now; all but ``PINNED`` pass by themselves."""

    PINNED = "pinned"
    ON_ITS_WAY = "on_its_way"
    IN_FLIGHT = "in_flight"
    RECENT = "recent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A version that is wanted in the engine of a node.

    Attributes:
        is_settled: no load is on its way.
        is_broken: its load failed for good: it takes a place for nothing.
        used_at: the last sign of use: an answer, a demand, or the end of its load.
        last_used_at: the same, or its last answer from another node, for the scores.
        rate_per_h: of this copy: the version's, divided by how many nodes want it in their engine.
        reload_ms: measured time to bring it back from the next tier down.

    """

    key: int
    node_id: int
    version_id: UUID
    tenant: str
    rank: int
    is_settled: bool
    is_broken: bool
    is_hot: bool
    used_at: datetime | None
    last_used_at: datetime | None
    rate_per_h: float
    tenant_rate_per_h: float
    hits: int
    size_bytes: int
    reload_ms: float
    is_retiring: bool
    clock: float

    @property
    def holding(self) -> Holding:
        """What its leaving the engine gives back."""
        amounts = {Resource.CPU_BYTES: self.size_bytes}
        return Holding(self.tenant, {**amounts, Resource.GPU_SLOTS: 1} if self.is_hot else amounts)

    def facts(self, *, weight: float, queue_wait_ms: float = 0.0) -> Facts:
        """The input of the scores."""
        return Facts(
            version_id=self.version_id,
            tenant=self.tenant,
            rate_per_h=self.rate_per_h,
            tenant_rate_per_h=self.tenant_rate_per_h,
            hits=self.hits,
            last_used_at=self.last_used_at,
            size_mib=self.size_bytes / MIB,
            reload_ms=self.reload_ms,
            weight=weight,
            is_retiring=self.is_retiring,
            clock=self.clock,
            queue_wait_ms=queue_wait_ms,
        )


def why_kept(
    resident: Resident,
    *,
    now: datetime,
    min_residency: timedelta,
    in_flight: Collection[UUID] = (),
    pinned: Collection[UUID] = (),
) -> Kept | None:
    """What keeps it where it is, if anything does. Aliases don't: heat and pins are what protects."""
    if resident.is_broken:
        return None
    if resident.version_id in pinned:
        return Kept.PINNED
    if not resident.is_settled:
        return Kept.ON_ITS_WAY
    if resident.version_id in in_flight:
        return Kept.IN_FLIGHT
    if resident.used_at is not None and resident.used_at + min_residency > now:
        return Kept.RECENT
    return None


def rank_load(residents: Collection[Resident]) -> RankLoad:
    """What a node serves with these."""
    ranks = [resident.rank for resident in residents]
    return RankLoad(
        highest=max(ranks, default=0),
        summed=sum(ranks),
        rate_per_h=sum(resident.rate_per_h for resident in residents),
    )
