"""A policy as people read it: every value that holds, where it differs from the defaults, and what nodes make of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cachecontrol.policy.document import PolicyDocument
from cachecontrol.policy.effective import PolicyInForce, built_in


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the document; ``is_own`` says that the defaults say otherwise."""

    path: str
    value: Any
    is_own: bool


class Means(Protocol):
    """What a node has."""

    name: str
    gpu_slots: int
    cpu_slots: int
    memory_bytes: int | None
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """What a node may use under a policy, beside what it has; bytes, and None for as much as is needed."""

    name: str
    hot: int
    gpu_slots: int
    places: int
    cpu_slots: int
    cpu_bytes: int | None
    disk_bytes: int
    disk_has: int


def values_of(document: PolicyDocument) -> list[Value]:
    """Every value that holds, in the order of the document."""
    usual = dict(_flat("", built_in(document.base_model).document.model_dump(mode="json")))
    return [
        Value(path, value, path not in usual or usual[path] != value)
        for path, value in _flat("", document.model_dump(mode="json"))
    ]


def limits_on(policy: PolicyInForce, nodes: Sequence[Means]) -> list[NodeLimits]:
    return [
        NodeLimits(
            name=node.name,
            hot=policy.hot_limit(node.gpu_slots),
            gpu_slots=node.gpu_slots,
            places=policy.places(node.cpu_slots),
            cpu_slots=node.cpu_slots,
            cpu_bytes=policy.cpu_bytes(node.memory_bytes),
            disk_bytes=policy.disk_bytes(node.disk_bytes),
            disk_has=node.disk_bytes,
        )
        for node in nodes
    ]


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401  any JSON value
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}" if path else str(key), inner)
    elif value != {}:
        yield path, value
