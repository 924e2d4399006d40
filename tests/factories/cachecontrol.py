"""Plain functions that make nodes and residencies, and the actors that speak for nodes and gateways."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from cachecontrol.drift import NodeReport
from cachecontrol.models import CachePolicy, Node, Residency
from cachecontrol.services.nodes import NodeFacts, NodeWithToken, register_node
from cachecontrol.services.outcomes import CommandOutcome, record_outcome
from cachecontrol.services.policies import approve_policy, propose_policy
from cachecontrol.services.reports import Answer, record_report
from cachecontrol.services.residencies import evict_version, warm_version
from cachecontrol.states import Desired, NodeStatus, Outcome
from registry.actors import Actor
from registry.models import BaseModel, BaseModelRevision, Version
from registry.states import Scope
from tests.factories.registry import make_actor, make_base_revision, make_person, next_name


def register(*, name: str | None = None, base_revision: BaseModelRevision | None = None, **facts: Any) -> NodeWithToken:
    """Register a node through the service; it has never reported."""
    known: dict[str, Any] = {
        "engine_kind": "vllm",
        "engine_url": "http://127.0.0.1:8100",
        "gpu_slots": 2,
        "cpu_slots": 4,
        "max_rank": 64,
        "disk_bytes": 10**9,
    }
    revision = base_revision or make_base_revision()
    node_facts = NodeFacts(base_revision=revision, **{**known, **facts})
    return register_node(actor=make_actor(), name=name or next_name("node"), facts=node_facts)


def make_node(
    *,
    base_revision: BaseModelRevision | None = None,
    status: NodeStatus = NodeStatus.UP,
    engine_healthy: bool = True,
    tainted: bool = False,
    **facts: Any,
) -> Node:
    """A node that is up and healthy unless said otherwise."""
    node = register(base_revision=base_revision, **facts).node
    Node.objects.filter(pk=node.pk).update(
        status=status.value,
        engine_healthy=engine_healthy,
        tainted=tainted,
        boot_id="boot-1",
        last_seen_at=None if status is NodeStatus.NEW else timezone.now(),
    )
    node.refresh_from_db()
    return node


def make_policy(
    *, base_model: BaseModel, more: str = "", by: Actor | None = None, approver: Actor | None = None
) -> CachePolicy:
    """A proposal; ``more`` is YAML behind ``base_model``. With an ``approver`` it is in force."""
    proposer = by or make_actor(make_person(is_platform_admin=True))
    text = f"base_model: {base_model.name}\n{more}"
    policy = propose_policy(actor=proposer, base_model=base_model, text=text)
    return policy if approver is None else approve_policy(actor=approver, policy=policy, digest=policy.digest)


def put_in_force(version: Version, more: str) -> CachePolicy:
    """A policy for the version's base model, in force; ``more`` as in ``make_policy``."""
    approver = make_actor(make_person(is_platform_admin=True))
    return make_policy(base_model=version.base_revision.base_model, more=more, approver=approver)


def node_actor(node: Node) -> Actor:
    """The actor that the node's own token gives."""
    token = node.token
    scopes = frozenset({Scope.NODE})
    return Actor(kind="node", id=token.prefix, name=token.name, token_prefix=token.prefix, scopes=scopes)


def gateway_actor() -> Actor:
    return Actor(kind="gateway", id="gw", name="gateway", token_prefix="gw", scopes=frozenset({Scope.DEMAND}))


def beat(node: Node, *, loaded: tuple[str, ...] = (), on_disk: tuple[str, ...] = (), **facts: Any) -> Answer:
    """A heartbeat of a healthy engine, and what its node is told."""
    known: dict[str, Any] = {"boot_id": "boot-1", "engine_healthy": True, **facts}
    state = NodeReport(loaded=frozenset(loaded), on_disk=frozenset(on_disk), **known)
    return record_report(actor=node_actor(node), report=state)


def report(node: Node, **facts: Any) -> list[str]:
    """A heartbeat of a healthy engine; the names that it is told to unload."""
    return beat(node, **facts).unknown


def tell(node: Node, version: Version, outcome: Outcome, **facts: Any) -> Residency:
    """An outcome of the generation that is asked for now, unless ``generation`` says another one."""
    generation = facts.pop("generation", None)
    if generation is None:
        generation = Residency.objects.get(node=node, version=version).generation
    told = CommandOutcome(engine_name=version.engine_name, generation=generation, outcome=outcome, **facts)
    return record_outcome(actor=node_actor(node), outcome=told)


def backdate(residency: Residency, seconds: float, *fields: str) -> None:
    """Let the named times of the residency lie further back."""
    residency.refresh_from_db()
    now = timezone.now()
    then = {name: (getattr(residency, name) or now) - timedelta(seconds=seconds) for name in fields}
    Residency.objects.filter(pk=residency.pk).update(**then)


def load(node: Node, version: Version, *, idle_s: float = 3600) -> Residency:
    """The version loaded on the node by hand, and not used for ``idle_s`` seconds."""
    residency = warm_version(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.LOADED)
    backdate(residency, idle_s, "state_changed_at", "created_at", "last_used_at")
    residency.refresh_from_db()
    return residency


def put_on_disk(node: Node, version: Version, *, idle_s: float = 3600) -> Residency:
    """The version on the node's disk alone, and not used nor asked for for ``idle_s`` seconds."""
    residency = load(node, version)
    evict_version(actor=make_actor(), node=node, version=version, to=Desired.DISK)
    tell(node, version, Outcome.ON_DISK)
    backdate(residency, idle_s, "state_changed_at", "last_used_at", "last_demand_at")
    residency.refresh_from_db()
    return residency
