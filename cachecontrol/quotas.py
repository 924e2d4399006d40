"""How much of a pool a tenant may hold, and whom it may displace to grow. Pure.

A *floor* is guaranteed: others never push a tenant below it. While it is unused it is lent to whoever wants the room,
and it is taken back from those above their own floors. Above its *ceiling* a tenant evicts only itself. Between the
two everybody bursts, and the scores decide. Amounts are whole: slots, and bytes. A guarantee in bytes is kept up to
the size of one version, since a version leaves whole.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

_MINUTE_S: Final = 60.0


class Resource(StrEnum):
    GPU_SLOTS = "gpu_slots"
    CPU_BYTES = "cpu_bytes"
    DISK_BYTES = "disk_bytes"


Amounts = Mapping[Resource, int]
# What each tenant holds of the nodes of a base model; who holds nothing may be left out.
Usage = Mapping[str, Amounts]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Bounds:
    """``ceiling`` None: as much as there is."""

    floor: int = 0
    ceiling: int | None = None


_UNBOUNDED: Final = Bounds()


@dataclass(frozen=True, slots=True)
class Quota:
    """One tenant's; ``queue_share`` and ``loads_per_minute`` None: what holds for everybody, and no limit."""

    bounds: Mapping[Resource, Bounds] = field(default_factory=dict)
    loads_per_minute: float | None = None
    queue_share: float | None = None

    def of(self, resource: Resource) -> Bounds:
        return self.bounds.get(resource, _UNBOUNDED)


@dataclass(frozen=True, slots=True)
class Quotas:
    default: Quota = field(default_factory=Quota)
    tenants: Mapping[str, Quota] = field(default_factory=dict)

    def of(self, tenant: str) -> Quota:
        return self.tenants.get(tenant, self.default)


@dataclass(frozen=True, slots=True)
class Holding:
    """What would be free again without one resident: whose it is, and what it takes."""

    tenant: str
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a tenant may grow.

    Attributes:
        is_possible: False: not even an empty pool would hold it; ``reason`` says so.
        only_itself: it would rise above a ceiling, so it has to give up something of its own first.
        reason: one sentence for people when there is something to say.
        over: of what it would have more than it may.

    """

    is_possible: bool
    only_itself: bool
    reason: str = ""
    over: tuple[Resource, ...] = ()


def admits(*, tenant: str, wants: Amounts, quotas: Quotas, used: Usage) -> Admission:
    """Whether ``tenant`` may take ``wants`` more."""
    quota = quotas.of(tenant)
    for resource, amount in wants.items():
        ceiling = quota.of(resource).ceiling
        if ceiling is not None and amount > ceiling:
            reason = f"{tenant} may have {ceiling} {_words(resource)} and this takes {amount}"
            return Admission(is_possible=False, only_itself=True, reason=reason, over=(resource,))
    over = _over(quota, wants, used.get(tenant, {}))
    if not over:
        return Admission(is_possible=True, only_itself=False)
    reason = f"{tenant} has all of the {', '.join(map(_words, over))} that its quota allows"
    return Admission(is_possible=True, only_itself=True, reason=reason, over=tuple(over))


def allowed_victims(
    *, tenant: str, wants: Amounts, quotas: Quotas, used: Usage, held: Mapping[Key, Holding]
) -> frozenset[Key]:
    """Those of ``held`` that ``tenant`` may displace to take ``wants`` more. Empty: it has to wait or be refused.

    Below its floor it takes from others first, whatever the scores say: giving up something of its own, it would never
    come to what it is guaranteed. Hand over only those that may leave now (nothing in flight, no pins), and ask again
    after each victim, with ``used`` as it is then: the next one may push somebody below a floor.
    """
    admission = admits(tenant=tenant, wants=wants, quotas=quotas, used=used)
    if not admission.is_possible:
        return frozenset()
    if admission.only_itself:
        over = _over(quotas.of(tenant), wants, used.get(tenant, {}))
        return frozenset(
            key
            for key, holding in held.items()
            if holding.tenant == tenant and any(holding.amounts.get(resource) for resource in over)
        )
    own = frozenset(key for key, holding in held.items() if holding.tenant == tenant)
    lent = frozenset(
        key
        for key, holding in held.items()
        if holding.tenant != tenant and _is_lent(holding, quotas.of(holding.tenant), used.get(holding.tenant, {}))
    )
    is_below = _is_below_floor(quotas.of(tenant), wants, used.get(tenant, {}))
    return lent if is_below and lent else own | lent


def floors_of(quotas: Quotas, resource: Resource) -> dict[str, int]:
    """What is guaranteed to whom; those to whom nothing is are left out."""
    floors = {tenant: quota.of(resource).floor for tenant, quota in quotas.tenants.items()}
    return {tenant: floor for tenant, floor in floors.items() if floor}


def kept_by_floor(held: Iterable[tuple[Key, int]], *, lent: int) -> frozenset[Key]:
    """Which of a tenant's files, in the order in which they would leave, stay: others may take ``lent`` bytes at most.

    ``held`` are keys with their sizes in bytes.
    """
    kept, left = set(), lent
    for key, size in held:
        if size <= left:
            left -= size
        else:
            kept.add(key)
    return frozenset(kept)


def wait_for_load(*, limit: float | None, started: Sequence[datetime], now: datetime) -> timedelta:
    """How long a tenant with ``limit`` loads per minute has to wait for its next one, after those that ``started``."""
    if limit is None:
        return timedelta(0)
    allowed = max(1, int(limit))
    window = timedelta(seconds=_MINUTE_S * allowed / limit)
    recent = sorted(at for at in started if at > now - window)
    return timedelta(0) if len(recent) < allowed else recent[-allowed] + window - now


def _over(quota: Quota, wants: Amounts, has: Amounts) -> list[Resource]:
    """The resources in which the tenant would be above its ceiling."""
    over = []
    for resource, amount in wants.items():
        ceiling = quota.of(resource).ceiling
        if ceiling is not None and has.get(resource, 0) + amount > ceiling:
            over.append(resource)
    return over


def _is_below_floor(quota: Quota, wants: Amounts, has: Amounts) -> bool:
    """Whether the tenant stays within a guarantee with what it wants."""
    return any(
        amount > 0 and has.get(resource, 0) + amount <= quota.of(resource).floor for resource, amount in wants.items()
    )


def _is_lent(holding: Holding, quota: Quota, has: Amounts) -> bool:
    """Whether its owner stays at or above every floor without it."""
    return all(
        has.get(resource, 0) - amount >= quota.of(resource).floor for resource, amount in holding.amounts.items()
    )


def _words(resource: Resource) -> str:
    return resource.value.replace("_", " ").replace("gpu", "GPU").replace("cpu", "CPU")
