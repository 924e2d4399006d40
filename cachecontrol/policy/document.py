"""The policy document of a base model: what may stay where, and who comes first. Sizes: 1 GB = 10^9, 1 MB = 10^6 bytes.

Every section and key has a default: a document of its ``base_model`` alone is what applies without any policy. None
means as much as the node has.
"""

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from cachecontrol.policy.cache import AdapterCache
from cachecontrol.policy.tenants import (
    Pin,
    Prewarm,
    QuotaSection,
    SlaClass,
    TenantQuota,
    TenantSettings,
    default_sla_classes,
)
from registry.documents.values import BaseModelName, Count, Name, NonNegative, Positive, Section, Share

STANDARD_SLA: Final = "standard"
# What an agent heeds: one that is told more than that heeds nothing, or less than was written.
Patience = Annotated[float, Field(ge=1, le=3600)]
Downloads = Annotated[int, Field(ge=1, le=16)]


class Loading(Section):
    """How versions get to nodes: ``concurrent_loads_per_node`` are under way at once, of which an engine loads one."""

    origin_timeout_s: Patience = 30.0
    concurrent_downloads: Downloads = 4
    concurrent_loads_per_node: Count = 4
    queue_limit: Count = 256
    queue_share_per_tenant: Share = 0.5
    min_residency_s: NonNegative = 10.0


class WeightedLru(Section):
    """How much each normalised factor counts."""

    idle: NonNegative = 1.0
    memory: NonNegative = 0.25
    hits: NonNegative = 1.0
    priority: NonNegative = 0.25
    reload: NonNegative = 0.5

    @model_validator(mode="after")
    def _counts_something(self) -> Self:
        if not any(weight for _name, weight in self):
            raise ValueError("at least one weight has to be above 0")
        return self


class Scoring(Section):
    """The constants of ``docs/scoring.md``."""

    half_life_minutes: Positive = 30.0
    a: NonNegative = 0.5
    b: NonNegative = 0.5
    phi: NonNegative = 0.25
    rho: Share = 0.05
    weighted_lru: WeightedLru = Field(default_factory=WeightedLru)


class Replicas(Section):
    """One more node for each ``requests_per_minute_per_node`` of a version's rate, up to ``max``."""

    requests_per_minute_per_node: Positive = 600.0
    max: Count = 4


class PolicyDocument(Section):
    base_model: BaseModelName
    adapter_cache: AdapterCache = Field(default_factory=AdapterCache)
    loading: Loading = Field(default_factory=Loading)
    scoring: Scoring = Field(default_factory=Scoring)
    sla_classes: Annotated[dict[Name, SlaClass], Field(max_length=16)] = Field(default_factory=default_sla_classes)
    tenants: Annotated[dict[Name, TenantSettings], Field(max_length=10_000)] = Field(default_factory=dict)
    pins: Annotated[tuple[Pin, ...], Field(max_length=4096)] = ()
    prewarm: Prewarm = Field(default_factory=Prewarm)
    replicas: Replicas = Field(default_factory=Replicas)
    quotas: QuotaSection = Field(default_factory=QuotaSection)

    @model_validator(mode="after")
    def _classes_exist(self) -> Self:
        if STANDARD_SLA not in self.sla_classes:
            raise ValueError(
                f"sla_classes needs {STANDARD_SLA}: the class of every tenant that the section tenants doesn't name"
            )
        for tenant, settings in self.tenants.items():
            if settings.sla not in self.sla_classes:
                known = ", ".join(sorted(self.sla_classes))
                raise ValueError(f"tenants.{tenant}.sla is {settings.sla}; there is only {known} in sla_classes")
        return self

    @model_validator(mode="after")
    def _pins_differ(self) -> Self:
        if len(set(self.pins)) != len(self.pins):
            raise ValueError("pins names the same twice")
        return self

    def sla_name_of(self, tenant: str) -> str:
        """The name of the tenant's class of service."""
        settings = self.tenants.get(tenant)
        return settings.sla if settings else STANDARD_SLA

    def sla_of(self, tenant: str) -> SlaClass:
        """The tenant's class of service."""
        return self.sla_classes[self.sla_name_of(tenant)]

    def quota_of(self, tenant: str) -> TenantQuota:
        """The tenant's own quota, or the default one."""
        return self.quotas.tenants.get(tenant, self.quotas.default)
