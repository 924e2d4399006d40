"""One function per audit event of cache control. Tags read ``subject:object:action``.

Each is called by a service inside the transaction that makes the change. What concerns a version goes to its tenant's
chain, what concerns a node to the platform's. A transaction writes to one chain only, so that no two wait for each
other in a circle.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from cachecontrol.models import CachePolicy, Node, Residency
from cachecontrol.states import Desired, NodeStatus, Observed
from registry.actors import Actor
from registry.audit import PLATFORM_CHAIN, append_record
from registry.models import BaseModel, Tenant, Version

_MARKS: Final[dict[tuple[str, bool], str]] = {
    ("cordoned", True): "cordon",
    ("cordoned", False): "uncordon",
    ("draining", True): "drain",
    ("draining", False): "resume",
}
_WISHES: Final[dict[Desired, str]] = {Desired.GPU: "want", Desired.DISK: "keep", Desired.ABSENT: "release"}


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


def node_marked(*, actor: Actor, node: Node, field: str, reason: str) -> None:
    """An operator cordoned or drained a node, or ended that."""
    to = bool(getattr(node, field))
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action=f"platform:node:{_MARKS[field, to]}",
        object_=_node(node),
        before={field: not to},
        after={field: to},
        reason=reason,
    )


def node_recycle_started(*, actor: Actor, node: Node, reason: str) -> None:
    """The engine is to be restarted, for the ``recycles``-th time in a row."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:recycle",
        object_=_node(node),
        before={"boot_id": node.boot_id, "tainted": node.tainted, "poisoned": node.poisoned},
        after={"recycles": node.recycles},
        reason=reason,
    )


def node_recycled(*, actor: Actor, node: Node) -> None:
    """The engine was restarted as was asked."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:recycled",
        object_=_node(node),
        before={"boot_id": node.recycling_boot_id},
        after={"boot_id": node.boot_id},
    )


def node_recycle_abandoned(*, actor: Actor, node: Node) -> None:
    """The engine was not restarted in time."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:abandon_recycle",
        object_=_node(node),
        before={"boot_id": node.recycling_boot_id},
        after={"boot_id": node.boot_id},
    )


def node_stuck(*, actor: Actor, node: Node) -> None:
    """The engine needs a restart, and its agent was given no way to do it: an alarm."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:stick",
        object_=_node(node),
        before={"tainted": node.tainted, "poisoned": node.poisoned},
        after={"stuck": True},
    )


def node_drifted(*, actor: Actor, node: Node, unknown: list[str], mismatched: list[str]) -> None:
    """The engine has names that nobody asked for, or has them from other files than ours: an alarm, once per name."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:node:drift",
        object_=_node(node),
        after={"boot_id": node.boot_id, "unknown": unknown, "mismatched": mismatched, "mismatches": node.mismatches},
    )


def residency_desired(*, actor: Actor, residency: Residency, was: Desired | None, reason: str = "") -> None:
    """A version is wanted on a node, or its files alone, or nothing any more; or the same wish was renewed."""
    append_record(
        actor=actor,
        chain=_chain(residency),
        action=f"node:residency:{_WISHES[Desired(residency.desired)]}",
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


def policy_proposed(*, actor: Actor, policy: CachePolicy) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:cache_policy:propose",
        object_=_policy(policy),
        after={"state": policy.state, "digest": policy.digest},
        reason=policy.comment,
    )


def policy_approved(*, actor: Actor, policy: CachePolicy, before: int | None) -> None:
    """A policy is in force, by the word of somebody else than who proposed it; ``before``: what was until then."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:cache_policy:approve",
        object_=_policy(policy),
        before={"state": "proposed", "in_force": before},
        after={"state": policy.state, "in_force": policy.number, "digest": policy.digest},
        reason=policy.reason,
    )


def policy_declined(*, actor: Actor, policy: CachePolicy) -> None:
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:cache_policy:decline",
        object_=_policy(policy),
        before={"state": "proposed"},
        after={"state": policy.state},
        reason=policy.reason,
    )


def policy_rolled_back(
    *, actor: Actor, base_model: BaseModel, before: int | None, after: CachePolicy | None, reason: str
) -> None:
    """What was approved earlier is in force again; ``after`` None: the built-in defaults."""
    to = {"in_force": None} if after is None else {"in_force": after.number, "digest": after.digest}
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:cache_policy:roll_back",
        object_={"kind": "base_model", "id": str(base_model.pk), "name": base_model.name},
        before={"in_force": before},
        after=to,
        reason=reason,
    )


def serving_rules_set(*, actor: Actor, tenant: Tenant, before: dict[str, Any], after: dict[str, Any]) -> None:
    append_record(
        actor=actor,
        chain=tenant.name,
        action="tenant:serving_rules:set",
        object_={"kind": "tenant", "id": str(tenant.pk), "name": tenant.name},
        before=before,
        after=after,
    )


def quota_refused(*, actor: Actor, version: Version, resource: str, reason: str) -> None:
    """A load was refused because its tenant has all of ``resource`` that its quota allows."""
    tenant = version.adapter.tenant
    append_record(
        actor=actor,
        chain=tenant.name,
        action="tenant:quota:refuse",
        object_={"kind": "quota", "id": f"{tenant.name}/{resource}", "name": resource},
        after={"resource": resource, "version": str(version), "base_model": version.adapter.base_model.name},
        reason=reason,
    )


def request_records_dropped(*, actor: Actor, table: str, days: Sequence[date]) -> None:
    """The records of these days were kept for as long as they are to be."""
    append_record(
        actor=actor,
        chain=PLATFORM_CHAIN,
        action="platform:request_records:drop",
        object_={"kind": "request_records", "id": table, "name": table},
        after={"days": [day.isoformat() for day in days]},
    )


def _chain(residency: Residency) -> str:
    return residency.version.adapter.tenant.name


def _node(node: Node) -> dict[str, str]:
    return {"kind": "node", "id": str(node.pk), "name": node.name}


def _residency(residency: Residency) -> dict[str, str]:
    return {"kind": "residency", "id": str(residency.pk), "name": str(residency)}


def _policy(policy: CachePolicy) -> dict[str, str]:
    return {"kind": "cache_policy", "id": str(policy.pk), "name": str(policy)}
