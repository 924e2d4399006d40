"""A plan in the making: who is where, and what is left of each node. Nodes are numbered in the order of their names."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from cachecontrol.placement.facts import Need, PlannedNode, PlannedVersion, PlanSettings, TenantLimits
from cachecontrol.placement.rendezvous import node_seeds

UNLIMITED: Final = 2**62


class Draft:
    """What is placed so far. ``restore``, ``add`` and ``remove`` are the only ways to change it.

    The arrays have one entry per node: ``places``, ``cpu``, ``disk``, ``hot`` and ``pins`` are what is left,
    ``rate`` is requests per hour, ``paid`` the same times the tenants' weights, ``lowest`` the smallest standing of
    what is loaded (infinite when nothing is). ``tenant_bytes`` and ``tenant_places`` are kept of those
    with limits alone.
    """

    def __init__(self, nodes: Sequence[PlannedNode], needs: Mapping[UUID, Need], settings: PlanSettings) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.name)
        self.needs = dict(needs)
        self.settings = settings
        self.index = {node.name: number for number, node in enumerate(self.nodes)}
        self.loaded: list[set[UUID]] = [set() for _ in self.nodes]
        self.homes: dict[UUID, list[int]] = {}
        self.touched: set[int] = set()
        self.tenant_bytes: defaultdict[str, int] = defaultdict(int)
        self.tenant_places: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._owned: defaultdict[str, set[tuple[int, UUID]]] = defaultdict(set)
        self._loads: defaultdict[str, float] = defaultdict(float)
        tenants = set()
        for need in self.needs.values():
            tenants.add(need.version.tenant)
            if need.replicas:
                self._loads[need.version.base_digest] += need.version.rate_per_h
        self._limited = {tenant for tenant in tenants if settings.limits_of(tenant) != TenantLimits()}
        self._describe_nodes()
        self._start_empty()

    def _describe_nodes(self) -> None:
        nodes = self.nodes
        self.seeds = node_seeds(node.name for node in nodes)
        self.weights = np.array([max(node.room, 1) for node in nodes], dtype=np.float64)
        self.is_open = np.array([node.is_open for node in nodes], dtype=np.bool_)
        self.max_rank = np.array([node.max_rank for node in nodes], dtype=np.int64)
        self.capacity = np.array([capacity_of(node, self.settings) for node in nodes], dtype=np.float64)
        self.bases = {
            base: np.array([node.base_digest == base for node in nodes], dtype=np.bool_)
            for base in {node.base_digest for node in nodes}
        }
        self.is_awake = np.ones(len(nodes), dtype=np.bool_)

    def _start_empty(self) -> None:
        nodes = self.nodes
        self.places = _ints(node.room for node in nodes)
        self.cpu = _ints(UNLIMITED if node.cpu_bytes is None else node.cpu_bytes for node in nodes)
        self.disk = _ints(UNLIMITED if node.disk_bytes is None else node.disk_bytes for node in nodes)
        self.hot = _ints(node.hot_limit for node in nodes)
        self.pins = _ints(node.pins for node in nodes)
        self.rate = np.zeros(len(nodes))
        self.paid = np.zeros(len(nodes))
        self.highest = np.zeros(len(nodes))
        self.summed = np.zeros(len(nodes))
        self.lowest = np.full(len(nodes), np.inf)

    def restore(self, number: int, held: Sequence[Need]) -> None:
        """Put all that an earlier plan has on a node there at once, on an empty node of this draft."""
        size = sum([need.version.size_bytes for need in held])
        self.loaded[number] = {need.id for need in held}
        self.places[number] -= len(held)
        self.cpu[number] -= size
        self.disk[number] -= size
        self.hot[number] -= sum([need.is_hot for need in held])
        self.pins[number] -= sum([need.version.is_pinned for need in held])
        self.rate[number] = sum([need.share_per_h for need in held])
        self.paid[number] = sum([need.share_per_h * need.version.weight for need in held])
        self.summed[number] = sum([need.version.rank for need in held])
        self.highest[number] = max([need.version.rank for need in held], default=0)
        self.lowest[number] = min([need.standing for need in held], default=np.inf)
        for need in held:
            self.homes.setdefault(need.version.version_id, []).append(number)
            self._count_tenant(number, need, 1)

    def add(self, number: int, need: Need) -> None:
        version = need.version
        self.loaded[number].add(need.id)
        self.homes.setdefault(need.id, []).append(number)
        self.touched.add(number)
        self._count(number, need, 1)
        self.highest[number] = max(self.highest[number], version.rank)
        self.lowest[number] = min(self.lowest[number], need.standing)

    def remove(self, number: int, need: Need) -> None:
        self.loaded[number].remove(need.id)
        self.homes[need.id].remove(number)
        self.touched.add(number)
        self._count(number, need, -1)
        rest = [self.needs[version_id] for version_id in self.loaded[number]]
        self.highest[number] = max((other.version.rank for other in rest), default=0)
        self.lowest[number] = min((other.standing for other in rest), default=np.inf)

    def _count(self, number: int, need: Need, sign: int) -> None:
        version, size = need.version, sign * need.version.size_bytes
        self.places[number] -= sign
        self.cpu[number] -= size
        self.disk[number] -= size
        self.hot[number] -= sign * need.is_hot
        self.pins[number] -= sign * version.is_pinned
        self.rate[number] += sign * need.share_per_h
        self.paid[number] += sign * need.share_per_h * version.weight
        self.summed[number] += sign * version.rank
        self._count_tenant(number, need, sign)

    def _count_tenant(self, number: int, need: Need, sign: int) -> None:
        tenant = need.version.tenant
        if tenant not in self._limited:
            return
        self.tenant_bytes[tenant] += sign * need.version.size_bytes
        self.tenant_places[tenant, number] += sign
        if sign > 0:
            self._owned[tenant].add((number, need.id))
        else:
            self._owned[tenant].remove((number, need.id))

    def homes_of(self, version_id: UUID) -> list[int]:
        return self.homes.get(version_id, [])

    def welcoming(self, version: PlannedVersion) -> NDArray[np.bool_]:
        """The nodes that could serve the version and that something new may come to."""
        base = self.bases.get(version.base_digest)
        if base is None:
            return np.zeros(len(self.nodes), dtype=np.bool_)
        mask: NDArray[np.bool_] = base & self.is_open & (self.max_rank >= version.rank)
        mask[[self.index[name] for name in version.unwanted_on if name in self.index]] = False
        return mask

    def possible(self, need: Need) -> NDArray[np.bool_]:
        """The nodes that may take the version if there were room."""
        mask = self.welcoming(need.version)
        mask[self.homes_of(need.id)] = False
        if need.version.is_pinned:
            mask &= self.pins > 0
        return mask

    def has_room(self, need: Need) -> NDArray[np.bool_]:
        """The nodes with a place and the bytes for the version, as far as its tenant may take one there."""
        size = need.version.size_bytes
        mask: NDArray[np.bool_] = (self.places > 0) & (self.cpu >= size) & (self.disk >= size)
        limit = self.settings.limits_of(need.version.tenant).places_per_node
        if limit is not None:
            tenant = need.version.tenant
            full = [number for number in range(len(self.nodes)) if self.tenant_places[tenant, number] >= limit]
            mask[full] = False
        return mask

    def may_stay(self, number: int, need: Need) -> bool:
        """Whether a version that is on the node may stay there beside what is placed so far."""
        node, version = self.nodes[number], need.version
        limits = self.settings.limits_of(version.tenant)
        return (
            node.is_keeping
            and node.base_digest == version.base_digest
            and version.rank <= node.max_rank
            and self.places[number] > 0
            and self.cpu[number] >= version.size_bytes
            and self.disk[number] >= version.size_bytes
            and (not version.is_pinned or self.pins[number] > 0)
            and (limits.places_per_node is None or self.tenant_places[version.tenant, number] < limits.places_per_node)
            and self.within_quota(need)
        )

    def within_quota(self, need: Need) -> bool:
        """Whether its tenant may have that many more bytes in the pool's engines."""
        return self.quota_left(need.version.tenant) >= need.version.size_bytes

    def quota_left(self, tenant: str) -> int:
        """The bytes that a tenant may still load; what is loaded is on disks too, so both ceilings count."""
        limits = self.settings.limits_of(tenant)
        ceilings = [limit for limit in (limits.cpu_bytes, limits.disk_bytes) if limit is not None]
        return min(ceilings, default=UNLIMITED) - self.tenant_bytes[tenant]

    def residents(self, number: int) -> list[Need]:
        """What is loaded on a node, the least worthy first."""
        return sorted(
            (self.needs[version_id] for version_id in self.loaded[number]), key=lambda need: (need.standing, need.id)
        )

    def owned_below(self, tenant: str, standing: float) -> list[tuple[int, Need]]:
        """What of a tenant is loaded anywhere and worth less than ``standing``, the least worthy first."""
        owned = [(number, self.needs[version_id]) for number, version_id in self._owned[tenant]]
        return sorted(
            ((number, need) for number, need in owned if need.standing < standing),
            key=lambda pair: (pair[1].standing, pair[1].id, pair[0]),
        )

    def load_of(self, base: str) -> float:
        """The requests per hour of all versions of a base that are wanted in engines."""
        return self._loads[base]

    def loaded_by_name(self) -> dict[str, frozenset[UUID]]:
        return {node.name: frozenset(held) for node, held in zip(self.nodes, self.loaded, strict=True) if held}


def capacity_of(node: PlannedNode, settings: PlanSettings) -> float:
    return node.requests_per_h or settings.requests_per_h_per_node


def _ints(values: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64)
