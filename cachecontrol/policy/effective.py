"""What a policy document means to those who decide: numbers per node and per tenant, in bytes and seconds."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import Final

from cachecontrol.policy.document import PolicyDocument
from cachecontrol.policy.tenants import Bounds as GivenBounds
from cachecontrol.policy.tenants import TenantQuota
from cachecontrol.quotas import Bounds, Quota, Quotas, Resource
from cachecontrol.scoring.settings import ScoringSettings, WeightedLruWeights

GIGABYTE: Final = 10**9
MEGABYTE: Final = 10**6
_MINUTES_PER_H: Final = 60


@dataclass(frozen=True)
class PolicyInForce:
    """What holds for a base model now; ``number`` None: no policy was approved, so the built-in defaults hold."""

    number: int | None
    document: PolicyDocument

    @property
    def eviction_policy(self) -> str:
        """The name for ``scoring.make_policy``."""
        return self.document.adapter_cache.gpu_hot.eviction_policy.value

    @cached_property
    def scoring(self) -> ScoringSettings:
        """The constants for ``scoring.make_policy``."""
        return scoring_settings(self.document)

    @cached_property
    def quotas(self) -> Quotas:
        """Every tenant's quota, in slots and bytes."""
        return quotas_of(self.document)

    @property
    def cpu_ttl(self) -> timedelta | None:
        """How long something stays idle in an engine before it goes to disk; None: for ever."""
        return _minutes(self.document.adapter_cache.cpu_warm.ttl_minutes)

    @property
    def disk_ttl(self) -> timedelta | None:
        """How long something stays idle on a disk before it goes; None: for ever."""
        return _minutes(self.document.adapter_cache.disk_cache.ttl_minutes)

    @property
    def min_residency(self) -> timedelta:
        """How long what was just loaded or used can't be a victim."""
        return timedelta(seconds=self.document.loading.min_residency_s)

    @property
    def served_per_h(self) -> float:
        """How many requests one node is expected to serve in an hour."""
        return self.document.replicas.requests_per_minute_per_node * _MINUTES_PER_H

    def hot_limit(self, gpu_slots: int) -> int:
        """How many versions of a node with so many slots the plan counts as hot."""
        return _at_most(gpu_slots, self.document.adapter_cache.gpu_hot.max_adapters)

    def places(self, cpu_slots: int) -> int:
        """How many versions an engine with so many CPU slots may hold by name, bytes aside."""
        return _at_most(cpu_slots, self.document.adapter_cache.cpu_warm.max_adapters)

    def places_to_fill(self, places: int) -> int:
        """How many of so many places the plan fills: what is above the high water mark goes again."""
        return int(places * (self.document.adapter_cache.cpu_warm.high_water or 1))

    def cpu_bytes(self, memory_bytes: int | None) -> int | None:
        """What an engine's versions may take of the memory; None: as much as they need."""
        limit = _bytes(self.document.adapter_cache.cpu_warm.max_memory_gb)
        return limit if memory_bytes is None else _at_most(memory_bytes, limit)

    def disk_bytes(self, disk_bytes: int) -> int:
        """What versions may take of a disk that has so many bytes for them."""
        return _at_most(disk_bytes, _bytes(self.document.adapter_cache.disk_cache.max_size_gb))

    def disk_bytes_to_fill(self, disk_bytes: int) -> int:
        """What the plan takes of such a disk: no more than stays there."""
        return int(self.disk_bytes(disk_bytes) * self.document.adapter_cache.disk_cache.high_water)

    def weight_of(self, tenant: str) -> int:
        """The tenant's priority weight; 1 is the least."""
        return self.document.sla_of(tenant).priority_weight

    def wait_s_of(self, tenant: str) -> float:
        """How many seconds a request of the tenant waits for a cold version."""
        return self.document.sla_of(tenant).wait_s

    def queue_places_of(self, tenant: str) -> int:
        """How many loads of the tenant may wait in a pool's queue at once; at least one."""
        loading, share = self.document.loading, self.document.quota_of(tenant).queue_share
        return max(1, int(loading.queue_limit * (loading.queue_share_per_tenant if share is None else share)))

    def loads_per_minute_of(self, tenant: str) -> float | None:
        """How many loads the tenant may cause in a minute; None: no limit."""
        return self.document.quota_of(tenant).loads_per_minute

    def node_limits(self, disk_bytes: int) -> dict[str, float | int | None]:
        """What the agent of a node with so large a disk is told with the answer to its heartbeat."""
        disk, loading = self.document.adapter_cache.disk_cache, self.document.loading
        return {
            "disk_bytes": self.disk_bytes(disk_bytes),
            "high_water": disk.high_water,
            "low_water": disk.low_water,
            "disk_ttl_s": None if disk.ttl_minutes is None else disk.ttl_minutes * 60,
            "scrub_bytes_per_s": int(disk.scrub_mb_per_s * MEGABYTE),
            "concurrent_downloads": loading.concurrent_downloads,
            "origin_timeout_s": loading.origin_timeout_s,
        }


@lru_cache(maxsize=256)
def built_in(base_model: str) -> PolicyInForce:
    """What holds for a base model without an approved policy."""
    return PolicyInForce(number=None, document=PolicyDocument(base_model=base_model))


def scoring_settings(document: PolicyDocument) -> ScoringSettings:
    found = document.scoring
    return ScoringSettings(
        half_life=timedelta(minutes=found.half_life_minutes),
        a=found.a,
        b=found.b,
        phi=found.phi,
        rho=found.rho,
        weighted_lru=WeightedLruWeights(**found.weighted_lru.model_dump()),
    )


def quotas_of(document: PolicyDocument) -> Quotas:
    section = document.quotas
    return Quotas(
        default=_quota(section.default), tenants={name: _quota(quota) for name, quota in section.tenants.items()}
    )


def _quota(quota: TenantQuota) -> Quota:
    return Quota(
        bounds={
            Resource.GPU_SLOTS: _bounds(quota.gpu_slots, unit=1),
            Resource.CPU_BYTES: _bounds(quota.cpu_mb, unit=MEGABYTE),
            Resource.DISK_BYTES: _bounds(quota.disk_mb, unit=MEGABYTE),
        },
        loads_per_minute=quota.loads_per_minute,
        queue_share=quota.queue_share,
    )


def _bounds(given: GivenBounds, *, unit: int) -> Bounds:
    return Bounds(floor=given.floor * unit, ceiling=None if given.ceiling is None else given.ceiling * unit)


def _at_most(most: int, limit: int | None) -> int:
    return most if limit is None else min(most, limit)


def _bytes(gigabytes: float | None) -> int | None:
    return None if gigabytes is None else max(1, int(gigabytes * GIGABYTE))


def _minutes(minutes: float | None) -> timedelta | None:
    return None if minutes is None else timedelta(minutes=minutes)
