"""The life of a node: silent ones are lost, unsound engines restarted, and what an operator wants of a node."""

import logging
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from cachecontrol import events
from cachecontrol.errors import NodeNotRestartable
from cachecontrol.lifecycle import (
    AbandonRecycle,
    EndRecycle,
    Leave,
    MarkLost,
    NodeDecision,
    NodeSnapshot,
    NodeTiming,
    RaiseAlarm,
    StartRecycle,
    decide_node,
    next_recycle,
    restart_due,
)
from cachecontrol.models import Node
from cachecontrol.selectors import lock_node, lock_nodes
from cachecontrol.services.planning.soon import replan_soon
from cachecontrol.states import NodeStatus
from cachecontrol.transitions import move_node
from registry.actors import Actor
from registry.models import BaseModelRevision
from registry.permissions import Action, require_on_platform

logger = logging.getLogger(__name__)


def cordon_node(*, actor: Actor, node: Node, reason: str = "") -> Node:
    """Place nothing new on the node; what it has stays and goes on answering. Quiet when it is so already."""
    return _mark(actor, node, "cordoned", to=True, reason=reason)


def uncordon_node(*, actor: Actor, node: Node, reason: str = "") -> Node:
    """Take the cordon off."""
    return _mark(actor, node, "cordoned", to=False, reason=reason)


def drain_node(*, actor: Actor, node: Node, reason: str = "") -> Node:
    """Route no more requests to the node, and have what it holds placed elsewhere and leave it. Quiet when repeated."""
    return _mark(actor, node, "draining", to=True, reason=reason)


def resume_node(*, actor: Actor, node: Node, reason: str = "") -> Node:
    """End a drain. A cordon stays."""
    return _mark(actor, node, "draining", to=False, reason=reason)


@transaction.atomic
def recycle_node(*, actor: Actor, node: Node, reason: str = "") -> Node:
    """Have the node's engine restarted, after its requests had time to end. Quiet while that is under way.

    Raises:
        NodeNotRestartable: its agent was given no way to restart the engine, or hasn't spoken of one that runs.

    """
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    locked = lock_node(node)
    if locked.recycling_since is not None:
        return locked
    if not locked.restartable:
        message = _("The agent of %(node)s was given no way to restart its engine: see LOREKEEPER_NODE_ENGINE_RESTART.")
        raise NodeNotRestartable(message % {"node": locked}, field="node")
    if locked.status != NodeStatus.UP or not locked.boot_id:
        message = _("%(node)s is not up: nobody is there to restart its engine. Try again when it reports.")
        raise NodeNotRestartable(message % {"node": locked}, field="node")
    _start_recycle(actor, locked, next_recycle(snapshot_of(locked), timezone.now()), reason)
    return locked


def tend_nodes(*, actor: Actor) -> None:
    """Look after every node that may be lost, or unsound, or is being restarted. One's trouble doesn't stop others."""
    silent = Q(status=NodeStatus.UP.value, last_seen_at__lt=timezone.now() - timing().timeout)
    unsound = Q(tainted=True) | Q(poisoned=True) | Q(recycling_since__isnull=False)
    for node in Node.objects.filter(silent | unsound).select_related("base_revision").order_by("pk"):
        try:
            tend_node(actor=actor, node=node)
        except Exception:
            logger.exception("node %s is left to the next sweep", node)


@transaction.atomic
def tend_node(*, actor: Actor, node: Node) -> NodeDecision:
    """Do for one node what can be done now."""
    # All of the pool at once: no two of them begin a restart at the same time.
    revisions = BaseModelRevision.objects.filter(digest=node.base_revision.digest)
    pool = lock_nodes(Node.objects.filter(base_revision__in=revisions))
    locked = next(member for member in pool if member.pk == node.pk)
    others = any(member.recycling_since is not None for member in pool if member.pk != node.pk)
    decision = decide_node(snapshot_of(locked, is_pool_recycling=others), timezone.now(), timing=timing())
    _apply(actor, locked, decision)
    return decision


def end_recycle_if_over(*, actor: Actor, node: Node) -> None:
    """End a restart that brought another boot id. The caller has locked the node."""
    if node.recycling_since is not None:
        decision = decide_node(snapshot_of(node), timezone.now(), timing=timing())
        if isinstance(decision, EndRecycle):
            _apply(actor, node, decision)


def restart_wanted(node: Node) -> str | None:
    """The boot id of the engine's life that the node's agent is to end now, if any."""
    return restart_due(snapshot_of(node), timezone.now(), timing=timing())


def snapshot_of(node: Node, *, is_pool_recycling: bool = False) -> NodeSnapshot:
    """The node as the decision sees it."""
    return NodeSnapshot(
        status=NodeStatus(node.status),
        last_seen_at=node.last_seen_at,
        boot_id=node.boot_id,
        tainted=node.tainted,
        poisoned=node.poisoned,
        restartable=node.restartable,
        recycling_since=node.recycling_since,
        recycling_boot_id=node.recycling_boot_id,
        recycles=node.recycles,
        recycle_after=node.recycle_after,
        is_stuck=node.stuck,
        is_pool_recycling=is_pool_recycling,
    )


def timing() -> NodeTiming:
    return NodeTiming(
        timeout=timedelta(seconds=settings.NODE_TIMEOUT_S),
        drain=timedelta(seconds=settings.DRAIN_S),
        recycle=timedelta(seconds=settings.RECYCLE_DEADLINE_S),
    )


def _apply(actor: Actor, node: Node, decision: NodeDecision) -> None:
    match decision:
        case MarkLost():
            move_node(node, was=NodeStatus.UP, to=NodeStatus.LOST)
            events.node_lost(actor=actor, node=node)
            replan_soon(node.base_revision.digest)
        case StartRecycle():
            _start_recycle(actor, node, decision, _("its engine is not sound"))
        case EndRecycle():
            events.node_recycled(actor=actor, node=node)
            _write(node, recycling_since=None, recycling_boot_id="")
            replan_soon(node.base_revision.digest)
        case AbandonRecycle(next_after):
            logger.error("the engine of node %s was not restarted in time", node)
            events.node_recycle_abandoned(actor=actor, node=node)
            _write(node, recycling_since=None, recycling_boot_id="", recycle_after=next_after)
            replan_soon(node.base_revision.digest)
        case RaiseAlarm():
            logger.error("the engine of node %s needs a restart, and nobody here can restart it", node)
            events.node_stuck(actor=actor, node=node)
            _write(node, stuck=True)
        case Leave():
            pass


def _start_recycle(actor: Actor, node: Node, how: StartRecycle, reason: str) -> None:
    _write(
        node,
        recycling_since=timezone.now(),
        recycling_boot_id=node.boot_id,
        recycles=how.recycles,
        recycle_after=how.next_after,
    )
    events.node_recycle_started(actor=actor, node=node, reason=reason)
    replan_soon(node.base_revision.digest)


@transaction.atomic
def _mark(actor: Actor, node: Node, field: str, *, to: bool, reason: str) -> Node:
    require_on_platform(actor, Action.MANAGE_PLATFORM)
    locked = lock_node(node)
    if getattr(locked, field) != to:
        _write(locked, **{field: to, f"{field}_at": timezone.now() if to else None})
        events.node_marked(actor=actor, node=locked, field=field, reason=reason)
        replan_soon(locked.base_revision.digest)
    return locked


def _write(node: Node, **facts: Any) -> None:  # noqa: ANN401
    for name, value in facts.items():
        setattr(node, name, value)
    node.save(update_fields=list(facts))
