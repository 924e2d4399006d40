"""A plan after one change, without planning anew. What it comes to is what ``make_plan`` would leave as it is."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from cachecontrol.placement.demand import needs_of
from cachecontrol.placement.disk import Disks
from cachecontrol.placement.draft import Draft
from cachecontrol.placement.facts import NOTHING, Holding, Need, Plan, PlannedNode, PlannedVersion, Unplaced, fits
from cachecontrol.placement.hot import choose_hot
from cachecontrol.placement.plan import as_plan, best_homes, keep_loaded, may_have_another, mean_capacity
from cachecontrol.placement.settle import lacks, relieve, settle

# Of what waits for room, so many times the room that was gained is tried: not everything that waits fits it.
_TRIES_PER_PLACE = 4


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """A node is new, or something about it is: it was lost, cordoned, drained, came back, has other limits."""

    node: PlannedNode


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node is there no more."""

    name: str


@dataclass(frozen=True, slots=True)
class VersionChanged:
    """A version is new, or its rate, its worth or what is wanted of it changed."""

    version: PlannedVersion


@dataclass(frozen=True, slots=True)
class VersionGone:
    """A version may not be served any more."""

    version_id: UUID


Change = NodeChanged | NodeGone | VersionChanged | VersionGone


def changes_since(plan: Plan, *, nodes: Iterable[PlannedNode], versions: Collection[PlannedVersion]) -> list[Change]:
    """What is another in these facts than in those of the plan: versions first, so that no node gets what left."""
    known = {version.version_id for version in versions}
    here = {node.name: node for node in nodes}
    return [
        *(VersionGone(version_id) for version_id in plan.needs if version_id not in known),
        *(VersionChanged(version) for version in versions if _is_news(plan, version)),
        *(NodeGone(name) for name in plan.nodes if name not in here),
        *(NodeChanged(node) for name, node in here.items() if plan.nodes.get(name) != node),
    ]


def resting_on(plan: Plan, held: Holding, changes: Iterable[Change] = ()) -> Plan:
    """What is held, as a plan made of the same facts as ``plan``: what ``changes`` are to be taken into.

    What a node has that could keep nothing, and still can't, is no part of it. A version or a node that is gone counts
    as the plan had it, so that the change gives its place to others, or its versions other places.
    """
    known = list(changes)
    gone = {change.version_id for change in known if isinstance(change, VersionGone)}
    left = {change.name for change in known if isinstance(change, NodeGone)}
    back = {change.node.name for change in known if isinstance(change, NodeChanged) and change.node.is_keeping}
    there = {name for name, node in plan.nodes.items() if node.is_keeping or name in back} - left
    planned = frozenset(plan.needs) - gone

    def merged(was: Mapping[str, frozenset[UUID]], now: Mapping[str, frozenset[UUID]]) -> dict[str, frozenset[UUID]]:
        sets = {name: now.get(name, NOTHING) & planned for name in there}
        for name, found in was.items() if gone or left else ():
            sets[name] = sets.get(name, NOTHING) | (found if name in left else found & gone)
        return {name: found for name, found in sets.items() if found}

    loaded = merged(plan.loaded, held.loaded)
    copies = Counter(version_id for found in loaded.values() for version_id in found)
    unplaced = {
        version_id: plan.unplaced.get(version_id, Unplaced.NO_ROOM)
        for version_id, need in plan.needs.items()
        if copies[version_id] < need.replicas
    }
    hot, disk = merged(plan.hot, held.hot), merged(plan.disk, held.disk)
    return replace(plan, loaded=loaded, hot=hot, disk=disk, unplaced=unplaced)


def after(plan: Plan, change: Change) -> Plan:
    """The plan with ``change`` taken in: as good a plan, and nothing moved that the change didn't make move.

    Nodes are not given up for having little to do; ``make_plan`` does that.
    """
    if isinstance(change, NodeChanged):
        return _after_node(plan, {**plan.nodes, change.node.name: change.node}, change.node.name)
    if isinstance(change, NodeGone):
        rest = {name: node for name, node in plan.nodes.items() if name != change.name}
        return _after_node(plan, rest, change.name)
    if isinstance(change, VersionChanged):
        return _after_version(plan, change.version)
    return _after_version_gone(plan, change.version_id)


def _is_news(plan: Plan, version: PlannedVersion) -> bool:
    """Whether the plan doesn't know that of it; as a rule it is the very same object."""
    need = plan.needs.get(version.version_id)
    return need is None or (need.version is not version and need.version != version)


def _after_node(plan: Plan, nodes: Mapping[str, PlannedNode], name: str) -> Plan:
    had = plan.loaded.get(name, NOTHING)
    draft = _draft_of(plan, nodes, plan.needs, without_node=name)
    number = draft.index.get(name)
    if number is not None:
        draft.touched.add(number)
        keep_loaded(draft, {name: had})
    displaced = [plan.needs[version_id] for version_id in had]
    return _finish(plan, draft, waiting=displaced)


def _after_version(plan: Plan, version: PlannedVersion) -> Plan:
    needs = {**plan.needs, **_needs_beside(plan, version)}
    draft = _draft_of(plan, plan.nodes, needs, without_version=version.version_id)
    need = draft.needs[version.version_id]
    homes = [draft.index[name] for name, held in plan.loaded.items() if version.version_id in held]
    draft.touched.update(homes)
    for number in best_homes(draft, need, homes):
        if may_have_another(draft, need) and draft.may_stay(number, need):
            draft.add(number, need)
    beside = [draft.needs[version_id] for version_id in needs if needs[version_id] is not plan.needs.get(version_id)]
    return _finish(plan, draft, waiting=beside)


def _after_version_gone(plan: Plan, version_id: UUID) -> Plan:
    needs = {known: need for known, need in plan.needs.items() if known != version_id}
    draft = _draft_of(plan, plan.nodes, needs, without_version=version_id)
    draft.touched.update(draft.index[name] for name, held in plan.loaded.items() if version_id in held)
    return _finish(plan, draft, waiting=())


def _needs_beside(plan: Plan, version: PlannedVersion) -> dict[UUID, Need]:
    """The need of the version, and of all of its tenant where a floor guarantees some and not others."""
    limits = plan.settings.limits_of(version.tenant)
    versions = {version.version_id: version}
    if limits.has_floor:
        owned = (need.version for need in plan.needs.values() if need.version.tenant == version.tenant)
        versions = {other.version_id: other for other in owned} | versions
    current = Counter(version_id for held in plan.loaded.values() for version_id in held if version_id in versions)
    capacity = mean_capacity(plan.nodes.values(), plan.settings)
    return needs_of(versions.values(), plan.settings, node_per_h=capacity, current=current)


def _draft_of(
    plan: Plan,
    nodes: Mapping[str, PlannedNode],
    needs: Mapping[UUID, Need],
    *,
    without_node: str = "",
    without_version: UUID | None = None,
) -> Draft:
    """The plan as a draft, less what a node has, or one version."""
    draft = Draft(list(nodes.values()), needs, plan.settings)
    for name, held in plan.loaded.items():
        if name != without_node:
            rest = held - {without_version} if without_version in held else held
            draft.restore(draft.index[name], [draft.needs[version_id] for version_id in rest])
    if plan.settings.consolidates:
        in_use = [draft.index[name] for name in plan.loaded if name in draft.index]
        draft.is_awake = np.zeros(len(draft.nodes), dtype=np.bool_)
        draft.is_awake[in_use] = True
    return draft


def _finish(plan: Plan, draft: Draft, *, waiting: Iterable[Need]) -> Plan:
    relieve(draft)
    asked = {need.id: need for need in waiting} | {need.id: need for need in _worth_another_try(plan, draft)}
    failed = settle(draft, [need for need in asked.values() if lacks(draft, need)])
    unplaced = _still_unplaced(plan, draft, tried=asked.keys()) | failed
    disks = _disks_of(plan, draft)
    hot = {name: chosen for name, chosen in plan.hot.items() if name in draft.index}
    hot |= choose_hot(draft, was=plan.hot, numbers=sorted(draft.touched))
    return as_plan(draft, hot=hot, disk=disks.by_name(), unplaced=unplaced)


def _worth_another_try(plan: Plan, draft: Draft) -> list[Need]:
    """The worthiest of what found no place, as far as the changed nodes may have room for it."""
    roomy = [number for number in sorted(draft.touched) if draft.is_open[number] and draft.places[number] > 0]
    if not roomy:
        return []
    waiting = [draft.needs[version_id] for version_id in plan.unplaced if version_id in draft.needs]
    known = [need for need in waiting if any(_might_go(draft, number, need) for number in roomy)]
    room = int(draft.places[roomy].sum())
    return sorted(known, key=lambda need: (-need.standing, need.id))[: room * _TRIES_PER_PLACE]


def _might_go(draft: Draft, number: int, need: Need) -> bool:
    return (
        fits(draft.nodes[number], need.version)
        and draft.nodes[number].name not in need.version.unwanted_on
        and number not in draft.homes_of(need.id)
        and (not need.version.is_pinned or bool(draft.pins[number] > 0))
        and bool(draft.cpu[number] >= need.version.size_bytes)
    )


def _still_unplaced(plan: Plan, draft: Draft, *, tried: Iterable[UUID]) -> dict[UUID, Unplaced]:
    settled = set(tried)
    return {
        version_id: reason
        for version_id, reason in plan.unplaced.items()
        if version_id not in settled and version_id in draft.needs and lacks(draft, draft.needs[version_id])
    }


def _disks_of(plan: Plan, draft: Draft) -> Disks:
    """The disks as planned; where something changed, what fits beside what is loaded now."""
    disks = Disks(draft)
    homeless: dict[UUID, Need] = {}
    for number, node in enumerate(draft.nodes):
        if number not in draft.touched:
            held = plan.disk.get(node.name, NOTHING)
            disks.restore(number, [draft.needs[version_id] for version_id in held if version_id in draft.needs])
    for number in sorted(draft.touched):
        name = draft.nodes[number].name
        gone = disks.keep(number, plan.disk.get(name, NOTHING) | plan.loaded.get(name, NOTHING))
        homeless |= {need.id: need for need in gone}
    for name in (plan.loaded.keys() | plan.disk.keys()) - draft.index.keys():
        held = plan.loaded.get(name, NOTHING) | plan.disk.get(name, NOTHING)
        homeless |= {version_id: draft.needs[version_id] for version_id in held if version_id in draft.needs}
    disks.trim()
    disks.find_homes(homeless.values())
    return disks
