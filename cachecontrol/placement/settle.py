"""Finding a node for each version that lacks one, and making room for what is worth more than what is there."""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from cachecontrol.placement.draft import Draft
from cachecontrol.placement.facts import Need, Unplaced
from cachecontrol.placement.ranks import added_costs
from cachecontrol.placement.rendezvous import preferences, version_seed

Mask = NDArray[np.bool_]
Leaving = list[tuple[int, Need]]


def settle(draft: Draft, waiting: Iterable[Need]) -> dict[UUID, Unplaced]:
    """Place what is on fewer nodes than it should be, the worthiest first; say what of it found no place.

    What is displaced waits again, for a place that what displaced it could not take.
    """
    queue = [(-need.standing, need.id) for need in waiting]
    heapify(queue)
    unplaced: dict[UUID, Unplaced] = {}
    while queue:
        _standing, version_id = heappop(queue)
        need = draft.needs[version_id]
        unplaced.pop(version_id, None)
        while lacks(draft, need):
            number = node_for(draft, need)
            if number is not None:
                draft.add(number, need)
                continue
            leaving = _room_for(draft, need)
            if not leaving:
                unplaced[version_id] = _reason(draft, need)
                break
            for place, other in leaving:
                draft.remove(place, other)
                heappush(queue, (-other.standing, other.id))
    return unplaced


def lacks(draft: Draft, need: Need) -> bool:
    return len(draft.homes_of(need.id)) < need.replicas


def relieve(draft: Draft) -> None:
    """Move single versions off nodes that have far more to do than others, as long as others can take them."""
    for base, of_base in draft.bases.items():
        limit = max(draft.settings.leave_factor * _mean_use(draft, base), draft.settings.fill)
        for number in np.flatnonzero(of_base & draft.is_open & (draft.rate > limit * draft.capacity)):
            if draft.nodes[number].capabilities.runtime_load:
                _relieve_node(draft, int(number), limit)


def _relieve_node(draft: Draft, number: int, limit: float) -> None:
    for need in sorted(draft.residents(number), key=lambda need: (-need.share_per_h, need.id)):
        excess = draft.rate[number] - limit * draft.capacity[number]
        if excess <= 0:
            return
        if need.version.is_pinned or need.share_per_h > excess:
            continue
        target = _choose(draft, need, draft.possible(need) & draft.has_room(need))
        if target is not None:
            draft.remove(number, need)
            draft.add(target, need)


def node_for(draft: Draft, need: Need) -> int | None:
    """The node that the version goes to without anything leaving; None: there is no room.

    One with a free GPU slot for what is hot before one without; one at work before one that is idle, as long as its
    load stays bounded; when all are overloaded, the least busy one.
    """
    if not draft.within_quota(need):
        return None
    roomy = draft.possible(need) & draft.has_room(need)
    if not roomy.any():
        return None
    with_slot = roomy & (draft.hot > 0)
    has_choice = need.is_hot and with_slot.any()
    for options in (with_slot, roomy) if has_choice else (roomy,):
        number = _choose(draft, need, options)
        if number is not None:
            return number
    return _least_busy(draft, with_slot if has_choice else roomy)


def _choose(draft: Draft, need: Need, options: Mask) -> int | None:
    """A node of the options that isn't overloaded by the version."""
    use = (draft.rate + need.share_per_h) / draft.capacity
    awake = options & draft.is_awake
    bound = draft.settings.load_factor * _mean_use(draft, need.version.base_digest)
    bounded = awake & ((use <= bound) | (draft.rate <= 0))
    if bounded.any():
        return _preferred(draft, need, bounded)
    filling = awake & (use <= draft.settings.fill)
    if filling.any():
        return _preferred(draft, need, filling)
    return _wake_one(draft, options & ~draft.is_awake)


def _preferred(draft: Draft, need: Need, options: Mask) -> int:
    """Of the first few nodes in the version's own order the one whose ranks suit best."""
    numbers = np.flatnonzero(options)
    order = preferences(draft.seeds[numbers], draft.weights[numbers], version_seed(need.id))
    choices = draft.settings.choices
    if len(numbers) > choices:
        first = np.argpartition(-order, choices - 1)[:choices]
        numbers, order = numbers[first], order[first]
    numbers = numbers[np.argsort(-order, kind="stable")]
    costs = added_costs(
        draft.highest[numbers],
        draft.summed[numbers],
        draft.paid[numbers],
        rank=need.version.rank,
        rate_per_h=need.share_per_h * need.version.weight,
        model=draft.settings.rank_cost,
    )
    return int(numbers[np.argmin(costs)])


def _wake_one(draft: Draft, options: Mask) -> int | None:
    """Idle nodes are woken in one order, whatever for, so that the next version finds the same one at work."""
    numbers = np.flatnonzero(options)
    if not len(numbers):
        return None
    number = int(numbers[np.argmin(draft.seeds[numbers])])
    draft.is_awake[number] = True
    return number


def _least_busy(draft: Draft, options: Mask) -> int:
    numbers = np.flatnonzero(options)
    return int(numbers[np.argmin(draft.rate[numbers] / draft.capacity[numbers])])


def _mean_use(draft: Draft, base: str) -> float:
    """What share of their capacity the nodes at work would use if the load were spread evenly."""
    at_work = draft.bases[base] & draft.is_awake
    capacity = float(draft.capacity[at_work].sum())
    return draft.load_of(base) / capacity if capacity else 0.0


def _room_for(draft: Draft, need: Need) -> Leaving:
    """What has to leave for the version; empty if nothing that is worth less can make room."""
    below = need.standing - draft.settings.swap_margin
    if not draft.within_quota(need):
        return _own_leaving(draft, need, below)
    numbers = np.flatnonzero(draft.possible(need) & (draft.lowest < below))
    cheapest = numbers[np.argsort(draft.lowest[numbers], kind="stable")][: draft.settings.choices]
    for number in cheapest.tolist():
        leaving = _leaving(draft, number, need, below)
        if leaving:
            return [(number, other) for other in leaving]
    return []


def _own_leaving(draft: Draft, need: Need, below: float) -> Leaving:
    """A tenant at its ceiling makes room for its own versions by its own versions alone."""
    leaving: Leaving = []
    excess = need.version.size_bytes - draft.quota_left(need.version.tenant)
    for number, other in draft.owned_below(need.version.tenant, below):
        if excess <= 0:
            break
        leaving.append((number, other))
        excess -= other.version.size_bytes
    return leaving if excess <= 0 else []


def _leaving(draft: Draft, number: int, need: Need, below: float) -> list[Need]:
    """The least worthy of a node whose leaving makes room, none of them in vain; empty if that isn't enough."""
    tenant, size = need.version.tenant, need.version.size_bytes
    limit = draft.settings.limits_of(tenant).places_per_node
    only_own = limit is not None and draft.tenant_places[tenant, number] >= limit
    missing_places = max(0, 1 - int(draft.places[number]))
    missing_bytes = max(0, size - int(min(draft.cpu[number], draft.disk[number])))
    missing_own = int(only_own)
    leaving: list[Need] = []
    for other in draft.residents(number):
        if other.standing >= below or (missing_places <= 0 and missing_bytes <= 0 and missing_own <= 0):
            break
        is_own = other.version.tenant == tenant
        if only_own and not is_own:
            continue
        leaving.append(other)
        missing_places -= 1
        missing_bytes -= other.version.size_bytes
        missing_own -= is_own
    return leaving if missing_places <= 0 and missing_bytes <= 0 and missing_own <= 0 else []


def _reason(draft: Draft, need: Need) -> Unplaced:
    if not draft.welcoming(need.version).any():
        return Unplaced.NO_NODE
    if not draft.within_quota(need):
        return Unplaced.QUOTA
    possible = draft.possible(need)
    if possible.any():
        return Unplaced.NO_ROOM
    return Unplaced.PINS if need.version.is_pinned and not draft.homes_of(need.id) else Unplaced.NO_NODE
