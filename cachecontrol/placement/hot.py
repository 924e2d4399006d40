"""Which of what a node has loaded counts as in its GPU slots."""

from collections import Counter
from collections.abc import Iterable, Mapping
from uuid import UUID

from cachecontrol.placement.draft import Draft
from cachecontrol.placement.facts import NOTHING, Claim, Need


def choose_hot(
    draft: Draft, *, was: Mapping[str, frozenset[UUID]], numbers: Iterable[int]
) -> dict[str, frozenset[UUID]]:
    """The worthiest of each of these nodes, as far as its slots and the tenants' ceilings reach.

    ``was`` says what is hot so far: that stays hot against what is worth hardly more, and on all other nodes it
    counts towards the ceilings. What nobody asks for gets no slot, and loses the one it has only to others.
    """
    chosen: dict[int, set[UUID]] = {number: set() for number in numbers}
    taken = _taken_elsewhere(draft, was, chosen)
    for _value, number, need in _by_worth(draft, was, chosen):
        limit = draft.settings.limits_of(need.version.tenant).hot
        if len(chosen[number]) >= draft.nodes[number].hot_limit:
            continue
        if limit is not None and taken[need.version.tenant] >= limit:
            continue
        chosen[number].add(need.id)
        taken[need.version.tenant] += 1
    return {draft.nodes[number].name: frozenset(hot) for number, hot in chosen.items()}


def _by_worth(
    draft: Draft, was: Mapping[str, frozenset[UUID]], numbers: Iterable[int]
) -> list[tuple[float, int, Need]]:
    margin = draft.settings.swap_margin
    values = []
    for number in numbers:
        before = was.get(draft.nodes[number].name, NOTHING)
        for version_id in draft.loaded[number]:
            need = draft.needs[version_id]
            if need.claim is not Claim.STAYING or version_id in before:
                values.append((need.standing + margin * (version_id in before), number, need))
    return sorted(values, key=lambda entry: (-entry[0], entry[1], entry[2].id))


def _taken_elsewhere(
    draft: Draft, was: Mapping[str, frozenset[UUID]], numbers: Mapping[int, set[UUID]]
) -> Counter[str]:
    taken: Counter[str] = Counter()
    for name, hot in was.items():
        if draft.index.get(name) not in numbers:
            taken.update(draft.needs[version_id].version.tenant for version_id in hot if version_id in draft.needs)
    return taken
