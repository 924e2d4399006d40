"""What the API answers: plain JSON documents made from models."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cachecontrol.explanations import Explanation
from cachecontrol.fleet import drift_seen
from cachecontrol.models import Eviction, LoadRequest, Node, Residency
from cachecontrol.requests.period import Period
from cachecontrol.requests.usage import TenantUsage, UsageBy, UsageFigures
from cachecontrol.services.loads.attempts import Demand
from cachecontrol.states import Desired, Tier
from registry.actors import Actor
from registry.models import Tenant
from registry.permissions import can_see_tenant, sees_all_tenants

Document = dict[str, Any]


def node_document(
    node: Node, residencies: Iterable[Residency] = (), *, actor: Actor, token: str | None = None
) -> Document:
    """A node with what ``actor`` may see on it. The token's text is there only in the answers that make one."""
    shown = _node(node, residencies, drift_seen(actor=actor, nodes=[node])[node.pk])
    return shown if token is None else {**shown, "token": token}


def node_documents(nodes: Sequence[Node], *, actor: Actor) -> list[Document]:
    """Nodes of ``list_nodes`` with what ``actor`` may see on them."""
    drift = drift_seen(actor=actor, nodes=nodes)
    return [_node(node, node.residencies.all(), drift[node.pk]) for node in nodes]


def _node(node: Node, residencies: Iterable[Residency], drift: Mapping[str, Sequence[str]]) -> Document:
    return {
        "name": node.name,
        "engine_kind": node.engine_kind,
        "engine_url": node.engine_url,
        "base_model": node.base_revision.base_model.name,
        "base_revision": node.base_revision.label,
        "gpu_slots": node.gpu_slots,
        "cpu_slots": node.cpu_slots,
        "max_rank": node.max_rank,
        "disk_bytes": node.disk_bytes,
        "memory_bytes": node.memory_bytes,
        "status": node.status,
        **_health_of(node),
        "drift": drift,
        "boot_id": node.boot_id or None,
        "last_seen_at": node.last_seen_at,
        "residencies": [residency_document(residency) for residency in residencies],
    }


def _health_of(node: Node) -> Document:
    return {
        "engine_healthy": node.engine_healthy,
        "tainted": node.tainted,
        "poisoned": node.poisoned,
        "restartable": node.restartable,
        "stuck": node.stuck,
        "cordoned": node.cordoned,
        "draining": node.draining,
        "recycling_since": node.recycling_since,
        "mismatches": node.mismatches,
        "disk_used_bytes": node.disk_used_bytes,
        "disk_free_bytes": node.disk_free_bytes,
    }


def residency_document(residency: Residency) -> Document:
    version = residency.version
    return {
        "node": residency.node.name,
        "tenant": version.adapter.tenant.name,
        "adapter": version.adapter.name,
        "version": version.name,
        "version_id": version.pk,
        "engine_name": version.engine_name,
        "desired": residency.desired,
        "observed": residency.observed,
        "planned_tier": _planned_tier(residency),
        "tier": residency.tier or None,
        "tier_is_estimate": residency.tier_is_estimate,
        "generation": residency.generation,
        "message": residency.message,
        "load_ms": residency.load_ms,
        "fetch_ms": residency.fetch_ms,
        "fetched_bytes": residency.fetched_bytes,
        "last_used_at": residency.last_used_at,
        "updated_at": residency.state_changed_at,
    }


def _planned_tier(residency: Residency) -> str:
    if residency.desired != Desired.GPU:
        return residency.desired
    return (Tier.GPU if residency.is_hot else Tier.CPU).value


def demand_document(demand: Demand) -> Document:
    return {
        "state": demand.state.value,
        "message": demand.message,
        "code": demand.code,
        "tier": demand.tier,
        "position": demand.position,
        "retry_after_s": demand.retry_after_s,
        "wait_s": demand.wait_s,
    }


def eviction_document(eviction: Eviction, actor: Actor) -> Document:
    """An eviction, without the names of tenants that the reader can't see."""
    version, runner_up = eviction.version, eviction.runner_up
    tenant = version.adapter.tenant
    sees_runner_up = runner_up is not None and can_see_tenant(actor, runner_up.adapter.tenant_id)
    sees_asker = eviction.asked_by != "" and (sees_all_tenants(actor) or eviction.asked_by == tenant.name)
    return {
        "node": eviction.node.name,
        "tenant": tenant.name,
        "adapter": version.adapter.name,
        "version": version.name,
        "tier": eviction.tier,
        "to_tier": eviction.to_tier,
        "reason": eviction.reason,
        "policy": eviction.policy or None,
        "policy_number": eviction.policy_number,
        "score": eviction.score,
        "factors": eviction.factors,
        "runner_up": str(runner_up) if sees_runner_up else None,
        "runner_up_score": eviction.runner_up_score,
        "asked_by": eviction.asked_by if sees_asker else None,
        "at": eviction.at,
    }


def placement_document(explanation: Explanation, actor: Actor) -> Document:
    version, heat = explanation.version, explanation.heat
    return {
        "tenant": version.adapter.tenant.name,
        "adapter": version.adapter.name,
        "version": version.name,
        "requests_per_hour": explanation.rate_per_h,
        "hits": 0 if heat is None else heat.hits,
        "last_used_at": None if heat is None else heat.last_used_at,
        "load": None if explanation.load is None else _load_document(explanation.load),
        "nodes": [residency_document(residency) for residency in explanation.residencies],
        "evictions": [eviction_document(eviction, actor) for eviction in explanation.evictions],
    }


def usage_document(tenant: Tenant, period: Period, by: UsageBy, usage: TenantUsage) -> Document:
    return {
        "tenant": tenant.name,
        "since": period.since,
        "until": period.until,
        "by": by.value,
        "total": _usage_figures(usage.total),
        "groups": [{"name": name, **_usage_figures(figures)} for name, figures in usage.groups],
        "left_out": usage.left_out,
    }


def _usage_figures(figures: UsageFigures) -> Document:
    known = sum(figures.tiers.values())
    return {
        "requests": figures.requests,
        "failed": figures.failed,
        "fallbacks": figures.fallbacks,
        "prompt_tokens": figures.prompt_tokens,
        "completion_tokens": figures.completion_tokens,
        "engine_ms": figures.engine_ms,
        "tiers": dict(figures.tiers),
        "gpu_hit_rate": figures.tiers["gpu"] / known if known else None,
        "ttft_ms": None if figures.ttft_ms is None else dict(zip(("p50", "p95", "p99"), figures.ttft_ms, strict=True)),
        "shadow_requests": figures.shadow_requests,
        "shadow_engine_ms": figures.shadow_engine_ms,
    }


def _load_document(load: LoadRequest) -> Document:
    return {
        "state": load.state,
        "node": None if load.node is None else load.node.name,
        "waiting": load.waiting,
        "since": load.enqueued_at,
        "until": load.deadline_at,
    }
