"""One function per audit event of cache control. Tags read ``subject:object:action``.

Each is called by a service inside the transaction that makes the change. What concerns a version goes to its tenant's
chain, what concerns a node to the platform's. A transaction writes to one chain only, so that no two wait for each
other in a circle.
"""

from typing import Any

from cachecontrol.models import Node, Residency
from cachecontrol.states import Desired, NodeStatus, Observed
from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN, append_record


def node_registered(*, actor: Actor, node: Node) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:register",
        object_=_node(node),
        after={
            "engine_kind": node.engine_kind,
            "engine_url": node.engine_url,
            "base_digest": node.base_revision.digest,
            "gpu_slots": node.gpu_slots,
            "cpu_slots": node.cpu_slots,
            "max_rank": node.max_rank,
            "disk_bytes": node.disk_bytes,
        },
    )


def node_changed(*, actor: Actor, node: Node, before: dict[str, Any], after: dict[str, Any]) -> None:
    """What a node is was changed by somebody."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:change",
        object_=_node(node),
        before=before,
        after=after,
    )


def node_token_rotated(*, actor: Actor, node: Node, before: str) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:rotate_token",
        object_=_node(node),
        before={"token": before},
        after={"token": node.token.prefix},
    )


def node_reported(*, actor: Actor, node: Node, before: dict[str, Any], after: dict[str, Any]) -> None:
    """A report brought news: the node is up, its engine was restarted, or its health changed."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:report",
        object_=_node(node),
        before=before,
        after=after,
    )


def node_lost(*, actor: Actor, node: Node) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:lose",
        object_=_node(node),
        before={"status": NodeStatus.UP.value},
        after={"status": NodeStatus.LOST.value},
    )


def node_tainted(*, actor: Actor, node: Node, reason: str) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:taint",
        object_=_node(node),
        before={"tainted": False},
        after={"tainted": True},
        reason=reason,
    )


def residency_desired(*, actor: Actor, residency: Residency, was: Desired | None, reason: str = "") -> None:
    """A version is wanted on a node, or not any more; or the same wish was renewed."""
    append_record(
        actor=actor,
        chain=_chain(residency),
        action="node:residency:want" if residency.desired == Desired.GPU else "node:residency:release",
        object_=_residency(residency),
        before=None if was is None else {"desired": was.value},
        after={"desired": residency.desired, "generation": residency.generation},
        reason=reason,
    )


def residency_observed(*, actor: Actor, residency: Residency, was: Observed, generation: int, reason: str = "") -> None:
    """A version came to another place on a node, while ``generation`` was asked for."""
    append_record(
        actor=actor,
        chain=_chain(residency),
        action="node:residency:observe",
        object_=_residency(residency),
        before={"observed": was.value},
        after={"observed": residency.observed, "generation": generation},
        reason=reason,
    )


def residency_forgotten(*, actor: Actor, residency: Residency) -> None:
    append_record(
        actor=actor,
        chain=_chain(residency),
        action="node:residency:forget",
        object_=_residency(residency),
        before={"desired": residency.desired, "observed": residency.observed},
    )


def _chain(residency: Residency) -> str:
    return residency.version.adapter.tenant.name


def _node(node: Node) -> dict[str, str]:
    return {"kind": "node", "id": str(node.pk), "name": node.name}


def _residency(residency: Residency) -> dict[str, str]:
    return {"kind": "residency", "id": str(residency.pk), "name": str(residency)}
