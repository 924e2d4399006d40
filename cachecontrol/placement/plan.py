"""Where every version of a pool is to be: in which engines, in which GPU slots, on which disks.

Engines keep whatever fits (host memory is the home of all that may be asked for: S-LoRA, arXiv 2311.03285); GPU slots
go to what is worth most. Versions with more load than one node serves are on several. A version goes to the nodes of
its own rendezvous order whose load stays bounded (Mirrokni, Thorup, Zadimoghaddam: SODA 2018, arXiv 1608.01350), among
the first few of them to the one whose ranks suit. What is placed stays unless its node can't keep it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from cachecontrol.placement.awake import choose_awake
from cachecontrol.placement.demand import needs_of
from cachecontrol.placement.disk import Disks
from cachecontrol.placement.draft import Draft, capacity_of
from cachecontrol.placement.facts import Claim, Holding, Need, Plan, PlannedNode, PlannedVersion, PlanSettings, Unplaced
from cachecontrol.placement.hot import choose_hot
from cachecontrol.placement.rendezvous import preferences, version_seed
from cachecontrol.placement.settle import lacks, relieve, settle


def make_plan(
    nodes: Sequence[PlannedNode],
    versions: Sequence[PlannedVersion],
    settings: PlanSettings,
    previous: Holding | None = None,
) -> Plan:
    """A plan for a pool that changes as little of ``previous`` (what is held, or an earlier plan) as it can.

    Versions that are in ``previous`` and not in ``versions`` may not be served any more and are in no plan. The same
    facts give the same plan, whatever their order.
    """
    held = previous or Holding()
    keeping = {node.name for node in nodes if node.is_keeping}
    current = Counter(version_id for name in keeping for version_id in held.loaded.get(name, ()))
    needs = needs_of(versions, settings, node_per_h=mean_capacity(nodes, settings), current=current)
    draft = Draft(nodes, needs, settings)
    choose_awake(draft, held.loaded)
    keep_loaded(draft, held.loaded)
    relieve(draft)
    unplaced = settle(draft, [need for need in draft.needs.values() if lacks(draft, need)])
    disks = Disks(draft)
    for number, node in enumerate(draft.nodes):
        disks.keep(number, held.disk.get(node.name, frozenset()) | held.loaded.get(node.name, frozenset()))
    disks.find_homes(draft.needs.values())
    hot = choose_hot(draft, was=held.hot, numbers=range(len(draft.nodes)))
    return as_plan(draft, hot=hot, disk=disks.by_name(), unplaced=unplaced)


def mean_capacity(nodes: Iterable[PlannedNode], settings: PlanSettings) -> float:
    """What a node of the pool serves, requests per hour: the mean of what was measured, else what is set."""
    rates = [capacity_of(node, settings) for node in nodes if node.is_keeping]
    return sum(rates) / len(rates) if rates else settings.requests_per_h_per_node


def keep_loaded(draft: Draft, loaded: Mapping[str, frozenset[UUID]]) -> None:
    """Leave everything where it is, the worthiest first, as far as it may stay and isn't on more nodes than needed."""
    homes: defaultdict[UUID, list[int]] = defaultdict(list)
    for name in sorted(loaded):
        number = draft.index.get(name)
        if number is not None:
            for version_id in loaded[name]:
                if version_id in draft.needs and _stays(draft, number, draft.needs[version_id]):
                    homes[version_id].append(number)
    known = [draft.needs[version_id] for version_id in homes]
    for need in sorted(known, key=lambda need: (-need.standing, need.id)):
        for number in best_homes(draft, need, homes[need.id]):
            if may_have_another(draft, need) and draft.may_stay(number, need):
                draft.add(number, need)


def may_have_another(draft: Draft, need: Need) -> bool:
    return need.claim is Claim.STAYING or lacks(draft, need)


def best_homes(draft: Draft, need: Need, numbers: list[int]) -> list[int]:
    """Its nodes in the order in which to stay on them, where it is on more than it needs."""
    if len(numbers) <= max(need.replicas, 1):
        return numbers
    order = preferences(draft.seeds[numbers], draft.weights[numbers], version_seed(need.id))
    ranked = sorted(zip(order.tolist(), numbers, strict=True), reverse=True)
    return sorted((number for _order, number in ranked), key=lambda number: not draft.nodes[number].is_open)


def as_plan(
    draft: Draft,
    *,
    hot: Mapping[str, frozenset[UUID]],
    disk: Mapping[str, frozenset[UUID]],
    unplaced: Mapping[UUID, Unplaced],
) -> Plan:
    return Plan(
        loaded=draft.loaded_by_name(),
        hot={name: chosen for name, chosen in hot.items() if chosen},
        disk=disk,
        nodes={node.name: node for node in draft.nodes},
        settings=draft.settings,
        needs=draft.needs,
        unplaced=unplaced,
    )


def _stays(draft: Draft, number: int, need: Need) -> bool:
    """Load leaves a node that is given up; what nobody asks for may as well stay there."""
    return bool(draft.is_awake[number]) or not draft.nodes[number].is_open or need.claim is Claim.STAYING
