"""Which disks keep the files of what is not in their node's engine."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

import numpy as np

from cachecontrol.placement.draft import UNLIMITED, Draft
from cachecontrol.placement.facts import Claim, Need, fits
from cachecontrol.placement.rendezvous import preferences, version_seed

_MIB: Final = 2**20


class Disks:
    """The files beside what is loaded. A loaded version's files count too: its engine may read them again."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._left = draft.disk.copy()
        self._tenant_bytes: defaultdict[str, int] = defaultdict(int, draft.tenant_bytes)
        self._copies: Counter[UUID] = Counter()
        self.files: list[set[UUID]] = [set() for _ in draft.nodes]

    def keep(self, number: int, version_ids: Iterable[UUID]) -> list[Need]:
        """Keep of these files what fits, the worthiest first; what a node keeps no more is answered."""
        node = self._draft.nodes[number]
        loaded, needs = self._draft.loaded[number], self._draft.needs
        known = [needs[version_id] for version_id in version_ids if version_id in needs and version_id not in loaded]
        gone = []
        for need in sorted(known, key=worth_on_disk, reverse=True):
            if node.is_keeping and fits(node, need.version) and self._has_room(number, need):
                self.add(number, need)
            else:
                gone.append(need)
        return gone

    def restore(self, number: int, held: Sequence[Need]) -> None:
        """Put all files that an earlier plan has on a node there at once, on a disk that has none yet."""
        self.files[number] = {need.version.version_id for need in held}
        self._left[number] -= sum([need.version.size_bytes for need in held])
        for need in held:
            self._count(need)

    def add(self, number: int, need: Need) -> None:
        self.files[number].add(need.id)
        self._left[number] -= need.version.size_bytes
        self._count(need)

    def _count(self, need: Need) -> None:
        self._tenant_bytes[need.version.tenant] += need.version.size_bytes
        self._copies[need.version.version_id] += 1

    def trim(self) -> None:
        """Take back from tenants above their ceiling what is worth least: loads elsewhere may have taken them there."""
        over = {tenant for tenant in self._tenant_bytes if self._left_of(tenant) < 0}
        if not over:
            return
        theirs = [
            (need, number)
            for number, held in enumerate(self.files)
            for need in map(self._draft.needs.__getitem__, held)
            if need.version.tenant in over
        ]
        for need, number in sorted(theirs, key=lambda pair: (worth_on_disk(pair[0]), pair[1])):
            if self._left_of(need.version.tenant) < 0:
                self.files[number].remove(need.id)
                self._left[number] += need.version.size_bytes
                self._tenant_bytes[need.version.tenant] -= need.version.size_bytes
                self._copies[need.id] -= 1

    def find_homes(self, needs: Iterable[Need]) -> None:
        """Give those a disk that are used and have too few copies, the worthiest first, each by its own order."""
        settings = self._draft.settings
        wanted = [need for need in needs if is_wanted_on_disk(need, settings.disk_rate_per_h)]
        for need in sorted(wanted, key=worth_on_disk, reverse=True):
            while self._copies_of(need) < settings.disk_copies and self._within_quota(need):
                number = self._home_for(need)
                if number is None:
                    break
                self.add(number, need)

    def by_name(self) -> dict[str, frozenset[UUID]]:
        return {node.name: frozenset(held) for node, held in zip(self._draft.nodes, self.files, strict=True) if held}

    def _home_for(self, need: Need) -> int | None:
        draft = self._draft
        mask = draft.welcoming(need.version) & (self._left >= need.version.size_bytes)
        mask[draft.homes_of(need.id)] = False
        if self._copies[need.id]:
            mask[[number for number, held in enumerate(self.files) if need.id in held]] = False
        numbers = np.flatnonzero(mask)
        if not len(numbers):
            return None
        order = preferences(draft.seeds[numbers], draft.weights[numbers], version_seed(need.id))
        return int(numbers[np.argmax(order)])

    def _copies_of(self, need: Need) -> int:
        return self._copies[need.id] + len(self._draft.homes_of(need.id))

    def _has_room(self, number: int, need: Need) -> bool:
        return bool(self._left[number] >= need.version.size_bytes) and self._within_quota(need)

    def _within_quota(self, need: Need) -> bool:
        return self._left_of(need.version.tenant) >= need.version.size_bytes

    def _left_of(self, tenant: str) -> int:
        limit = self._draft.settings.limits_of(tenant).disk_bytes
        return (UNLIMITED if limit is None else limit) - self._tenant_bytes[tenant]


def is_wanted_on_disk(need: Need, above_per_h: float) -> bool:
    return need.claim is not Claim.STAYING or need.version.rate_per_h > above_per_h


def worth_on_disk(need: Need) -> tuple[bool, int, float, UUID]:
    """Bytes are the limit on a disk, so a version's score there is per MiB: less by the logarithm of its size.

    Before all scores comes what a floor guarantees.
    """
    size = max(need.version.size_bytes / _MIB, 1e-6)
    return need.keeps_files, need.claim, need.version.keep - math.log(size), need.id
