"""What the ledger says while the load runs: whether anybody has more than a quota allows, or a node than it holds."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from bench.cache.base import BASE_NAME
from bench.cache.stage import NODE
from client.errors import LorekeeperError

if TYPE_CHECKING:
    from bench.cache.plan import Plan
    from client.resources.cache_policies import Amount
    from client.sdk import LorekeeperClient

_EVERY_S = 1.0


@dataclass(slots=True)
class Ledger(threading.Thread):
    """Looks every second, until it is left.

    Attributes:
        looks: how often it has looked.
        unanswered: how often it got no answer.
        breaches: what was above its limit, with the amounts.
        most: the largest share of a ceiling that a tenant has used, by resource.

    """

    admin: LorekeeperClient
    plan: Plan
    looks: int = 0
    breaches: list[str] = field(default_factory=list)
    most: dict[str, float] = field(default_factory=dict)
    unanswered: int = 0
    _left: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super(Ledger, self).__init__(name="ledger", daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._left.set()
        self.join()

    def told(self) -> str:
        """What was seen, in a sentence."""
        most = ", ".join(f"{name} {share:.0%}" for name, share in self.most.items())
        return (
            f"quotas: {len(self.breaches)} breaches in {self.looks} looks ({self.unanswered} more were not answered), "
            f"most used of a ceiling: {most or 'unknown'}"
        )

    def faults(self) -> list[str]:
        """What was beyond a limit; limits that nobody has looked at were not held either."""
        if not self.looks:
            return [f"nobody knows whether quotas were held: none of {self.unanswered} looks was answered"]
        count = len(self.breaches)
        return [*([f"{count} quotas were not held"] if count else []), *self.breaches[:3]]

    def run(self) -> None:
        while not self._left.wait(_EVERY_S):
            try:
                self._look()
            except LorekeeperError:
                self.unanswered += 1

    def _look(self) -> None:
        for quota in self.admin.cache_policies.quotas(BASE_NAME):
            for name, amount in (("gpu_slots", quota.gpu_slots), ("cpu_bytes", quota.cpu_bytes)):
                self._compare(f"{quota.tenant} {name}", name, amount)
        node = self.admin.nodes.get(NODE)
        wanted = sum(residency.desired == "gpu" for residency in node.residencies)
        if wanted > self.plan.places:
            self.breaches.append(f"{wanted} versions are wanted in an engine of {self.plan.places}")
        self.looks += 1

    def _compare(self, what: str, resource: str, amount: Amount) -> None:
        if amount.ceiling is None:
            return
        self.most[resource] = max(self.most.get(resource, 0.0), amount.used / amount.ceiling)
        if amount.used > amount.ceiling:
            self.breaches.append(f"{what}: {amount.used} of {amount.ceiling}")
