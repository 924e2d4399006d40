"""What a policy asks of a pool that its nodes can't give. Pure: the caller hands over what the nodes are."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cachecontrol.policy.document import PolicyDocument
from cachecontrol.policy.effective import GIGABYTE, PolicyInForce, quotas_of
from cachecontrol.quotas import Resource


@dataclass(frozen=True, slots=True)
class PoolNode:
    """A node of the base model.

    Attributes:
        slot_bytes: what its engine sets aside for one slot at its largest rank; None where it sets nothing aside.
        memory_bytes: what versions may take of its memory; None: not known.

    """

    name: str
    gpu_slots: int
    max_rank: int
    disk_bytes: int
    memory_bytes: int | None = None
    slot_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the policy can't hold; ``path`` is dotted."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def find_problems(document: PolicyDocument, nodes: Sequence[PoolNode]) -> tuple[Problem, ...]:
    """Everything that the nodes can't give. Without nodes, nothing is known to be wrong."""
    if not nodes:
        return ()
    return (*slots_too_large(document, nodes), *_pins(document, nodes), *_floors(document, nodes))


def slots_too_large(document: PolicyDocument, nodes: Iterable[PoolNode]) -> Iterator[Problem]:
    """Nodes whose engines set aside more than the policy allows: they do so when they start, whatever sits there."""
    limit = document.adapter_cache.gpu_hot.max_memory_gb
    if limit is None:
        return
    for node in nodes:
        reserved = node.gpu_slots * (node.slot_bytes or 0)
        if reserved > limit * GIGABYTE:
            yield Problem(
                "adapter_cache.gpu_hot.max_memory_gb",
                f"{node.name} sets aside {_gb(reserved)} GB for its {node.gpu_slots} slots at rank {node.max_rank}, "
                f"and the policy allows {limit:g} GB: allow that much, or start its engine with fewer slots or a "
                "smaller rank",
            )


def _pins(document: PolicyDocument, nodes: Iterable[PoolNode]) -> Iterator[Problem]:
    """An engine whose every slot is pinned can serve nothing else, and fails."""
    policy = PolicyInForce(number=None, document=document)
    most = sum(policy.hot_limit(node.gpu_slots) - 1 for node in nodes)
    if len(document.pins) > most:
        yield Problem("pins", f"there are {len(document.pins)}, and room for {most}: one slot of each node stays free")


def _floors(document: PolicyDocument, nodes: Sequence[PoolNode]) -> Iterator[Problem]:
    policy, quotas = PolicyInForce(number=None, document=document), quotas_of(document)
    memory = [policy.cpu_bytes(node.memory_bytes) for node in nodes]
    there_is = {
        Resource.GPU_SLOTS: sum(policy.hot_limit(node.gpu_slots) for node in nodes),
        Resource.CPU_BYTES: None if None in memory else sum(each for each in memory if each is not None),
        Resource.DISK_BYTES: sum(policy.disk_bytes(node.disk_bytes) for node in nodes),
    }
    for resource, most in there_is.items():
        promised = sum(quota.of(resource).floor for quota in quotas.tenants.values())
        if most is not None and promised > most:
            name = resource.value
            yield Problem(
                "quotas.tenants",
                f"the floors of {name} come to {promised:,}, and all nodes together have {most:,}: a guarantee has to "
                "be one",
            )


def _gb(number: int) -> str:
    return f"{number / GIGABYTE:.3g}"
