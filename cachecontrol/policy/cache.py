"""The section ``adapter_cache``: how much of each tier, and the rules that no document may soften."""

from enum import StrEnum
from typing import Final, Self

from pydantic import Field, field_validator, model_validator

from registry.documents.values import Count, NonNegative, Positive, Section, Share


class EvictionPolicy(StrEnum):
    LRU = "lru"
    LFU = "lfu"
    GDSF = "gdsf"
    WEIGHTED_LRU = "weighted_lru"
    DENSITY = "density"


class KeyField(StrEnum):
    TENANT_ID = "tenant_id"
    ADAPTER_ID = "adapter_id"
    ADAPTER_VERSION = "adapter_version"
    BASE_MODEL_REVISION = "base_model_revision"


_WHY_KEY_FIELD: Final = {
    KeyField.TENANT_ID: "two tenants may use one adapter name, and one would get the other's weights",
    KeyField.ADAPTER_ID: "a tenant's adapters would be taken for one another",
    KeyField.ADAPTER_VERSION: "a new version would be answered by the cached weights of an old one",
    KeyField.BASE_MODEL_REVISION: "weights trained on one revision of the base would be served on another",
}


class Tier(Section):
    """Water marks are shares of what the tier holds: above ``high_water`` it is emptied down to ``low_water``.

    Without them, only as much leaves as the newcomer needs.
    """

    high_water: Share | None = None
    low_water: Share | None = None

    @model_validator(mode="after")
    def _low_below_high(self) -> Self:
        if (self.high_water is None) != (self.low_water is None):
            raise ValueError("high_water and low_water come together: give both or neither")
        if self.high_water is not None and self.low_water is not None and self.low_water >= self.high_water:
            raise ValueError(f"low_water ({self.low_water}) has to be below high_water ({self.high_water})")
        return self


class GpuHot(Section):
    """What sits in an engine's slots, per node. Without water marks: a slot that is emptied is of no use to anybody."""

    max_adapters: Count | None = None
    max_memory_gb: Positive | None = None
    eviction_policy: EvictionPolicy = EvictionPolicy.DENSITY


class CpuWarm(Tier):
    """What an engine holds by name, slots included, per node; idle for ``ttl_minutes``, it goes to disk."""

    max_adapters: Count | None = None
    max_memory_gb: Positive | None = None
    ttl_minutes: Positive | None = None


class DiskCache(Tier):
    """Files on a node's disk; idle for ``ttl_minutes``, they go. ``scrub_mb_per_s`` 0: no scrub."""

    max_size_gb: Positive | None = None
    high_water: Share = 0.9
    low_water: Share = 0.8
    ttl_minutes: Positive | None = None
    scrub_mb_per_s: NonNegative = 20.0
    verify_checksum: bool = True

    @field_validator("verify_checksum")
    @classmethod
    def _always(cls, value: bool) -> bool:  # noqa: FBT001  pydantic's form
        if not value:
            raise ValueError("has to be true: a node never hands an engine files whose digests it hasn't checked")
        return value


class RegistryRules(Section):
    """Nothing here can be softened; it is written down so that who reads the document sees it."""

    require_signature: bool = True
    allow_unapproved_adapter: bool = False

    @field_validator("require_signature")
    @classmethod
    def _signed(cls, value: bool) -> bool:  # noqa: FBT001  pydantic's form
        if not value:
            raise ValueError("has to be true: only signed versions are loaded, and the nodes check that themselves")
        return value

    @field_validator("allow_unapproved_adapter")
    @classmethod
    def _approved(cls, value: bool) -> bool:  # noqa: FBT001  pydantic's form
        if value:
            raise ValueError("has to be false: only an approved, signed, unrevoked version may be loaded by a node")
        return value


class CacheKey(Section):
    """What tells two cached versions apart: always all four fields."""

    key_fields: tuple[KeyField, ...] = tuple(KeyField)

    @field_validator("key_fields")
    @classmethod
    def _complete(cls, value: tuple[KeyField, ...]) -> tuple[KeyField, ...]:
        for field in KeyField:
            if field not in value:
                raise ValueError(f"has to contain {field.value}: without it, {_WHY_KEY_FIELD[field]}")
        if len(set(value)) != len(value):
            raise ValueError("names a field twice")
        return value


class AdapterCache(Section):
    gpu_hot: GpuHot = Field(default_factory=GpuHot)
    cpu_warm: CpuWarm = Field(default_factory=CpuWarm)
    disk_cache: DiskCache = Field(default_factory=DiskCache)
    registry: RegistryRules = Field(default_factory=RegistryRules)
    placement: CacheKey = Field(default_factory=CacheKey)

    @model_validator(mode="after")
    def _hot_within_warm(self) -> Self:
        """Slots are filled from what the engine holds."""
        hot, warm = self.gpu_hot.max_adapters, self.cpu_warm.max_adapters
        if hot is not None and warm is not None and hot > warm:
            raise ValueError(f"cpu_warm.max_adapters ({warm}) has to be at least gpu_hot.max_adapters ({hot})")
        return self
