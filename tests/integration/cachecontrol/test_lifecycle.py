"""Cordons, drains and restarts: what an operator wants of a node, and what becomes of an engine that isn't sound."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cachecontrol.errors import NodeNotRestartable
from cachecontrol.lifecycle import decide_node
from cachecontrol.models import Node
from cachecontrol.services.lifecycle import (
    cordon_node,
    drain_node,
    recycle_node,
    resume_node,
    tend_nodes,
    uncordon_node,
)
from cachecontrol.states import NodeStatus
from registry.errors import NotFound, PermissionDenied
from registry.models import AuditRecord, Version
from registry.states import Role
from tests.factories.cachecontrol import beat, make_node
from tests.factories.registry import make_actor, make_member, make_tenant

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_drain(settings: Any) -> None:
    settings.DRAIN_S = 0


def tend(node: Node) -> Node:
    tend_nodes(actor=make_actor())
    node.refresh_from_db()
    return node


def restartable(node: Node, **facts: Any) -> Node:
    Node.objects.filter(pk=node.pk).update(restartable=True, **facts)
    node.refresh_from_db()
    return node


def actions() -> list[str]:
    records = AuditRecord.objects.filter(object__kind="node").exclude(action__endswith=":register").order_by("seq")
    return [record.action.rpartition(":")[2] for record in records]


def test_a_cordon_and_a_drain_are_put_on_and_taken_off_once_with_their_reasons(node: Node) -> None:
    actor = make_actor()
    for _time in range(2):
        cordon_node(actor=actor, node=node, reason="new driver")
        drain_node(actor=actor, node=node)
    node.refresh_from_db()
    assert (node.cordoned, node.draining, node.is_closed) == (True, True, True)
    for _time in range(2):
        resume_node(actor=actor, node=node)
        uncordon_node(actor=actor, node=node)
    node.refresh_from_db()
    assert not node.is_closed
    assert actions() == ["cordon", "drain", "resume", "uncordon"]
    record = AuditRecord.objects.get(action="platform:node:cordon")
    assert (record.before, record.after, record.reason) == ({"cordoned": False}, {"cordoned": True}, "new driver")


def test_only_who_manages_the_platform_operates_nodes(node: Node) -> None:
    restartable(node)
    for operation in (cordon_node, uncordon_node, drain_node, resume_node, recycle_node):
        with pytest.raises((PermissionDenied, NotFound)):
            operation(actor=make_member(make_tenant(), *Role), node=node)


def test_a_tainted_engine_is_restarted_by_its_agent_and_the_node_is_open_again(node: Node) -> None:
    tend(restartable(node, tainted=True))
    assert node.is_closed
    assert beat(node, restartable=True).recycle == "boot-1"
    assert beat(node, restartable=True).recycle == "boot-1"
    assert beat(node, restartable=True, boot_id="boot-2").recycle is None
    node.refresh_from_db()
    assert (node.tainted, node.is_closed, node.recycling_boot_id) == (False, False, "")
    assert actions() == ["recycle", "report", "recycled"]


def test_requests_have_time_to_end_before_a_restart(node: Node, settings: Any) -> None:
    settings.DRAIN_S = 5
    tend(restartable(node, tainted=True))
    assert beat(node, restartable=True).recycle is None
    Node.objects.filter(pk=node.pk).update(recycling_since=timezone.now() - timedelta(seconds=5))
    assert beat(node, restartable=True).recycle == "boot-1"


def test_a_poisoned_engine_is_known_by_its_agents_word_and_restarted(node: Node) -> None:
    restartable(node)
    beat(node, restartable=True, poisoned=True, engine_healthy=False)
    node.refresh_from_db()
    assert node.is_closed
    assert beat(tend(node), restartable=True, poisoned=True, engine_healthy=False).recycle == "boot-1"


def test_nobody_to_restart_an_unsound_engine_is_an_alarm_raised_once(node: Node, caplog: Any) -> None:
    Node.objects.filter(pk=node.pk).update(tainted=True)
    for _time in range(2):
        tend(node)
    assert (node.stuck, node.recycling_since, actions()) == (True, None, ["stick"])
    assert caplog.text.count("needs a restart") == 1
    beat(node, boot_id="boot-2")
    node.refresh_from_db()
    assert (node.stuck, node.tainted) == (False, False)


def test_two_nodes_of_a_pool_are_not_restarted_at_once(node: Node, version: Version) -> None:
    other = make_node(base_revision=version.base_revision, name="n2")
    for one in (node, other):
        restartable(one, tainted=True)
    tend(node)
    assert Node.objects.filter(recycling_since__isnull=False).count() == 1
    beat(Node.objects.get(recycling_since__isnull=False), restartable=True, boot_id="boot-2")
    tend(node)
    assert Node.objects.filter(recycling_since__isnull=False, tainted=True).count() == 1


def test_a_restart_that_does_not_happen_is_given_up_and_tried_again_later(node: Node) -> None:
    tend(restartable(node, tainted=True))
    long_ago = timezone.now() - timedelta(minutes=11)
    Node.objects.filter(pk=node.pk).update(recycling_since=long_ago, recycle_after=timezone.now())
    tend(node)
    assert (node.recycling_since, node.tainted) == (None, True)
    assert (tend(node).recycles, node.recycling_since) == (1, None)
    Node.objects.filter(pk=node.pk).update(recycle_after=timezone.now())
    assert tend(node).recycles == 2
    assert actions() == ["recycle", "abandon_recycle", "recycle"]


def test_an_operator_has_an_engine_restarted_once(node: Node) -> None:
    restartable(node)
    for _time in range(2):
        recycle_node(actor=make_actor(), node=node, reason="it is slow")
    assert beat(node, restartable=True).recycle == "boot-1"
    assert actions() == ["recycle"]
    assert AuditRecord.objects.get(action="platform:node:recycle").reason == "it is slow"


def test_an_operator_is_told_when_nobody_can_restart_the_engine(node: Node) -> None:
    with pytest.raises(NodeNotRestartable, match="LOREKEEPER_NODE_ENGINE_RESTART"):
        recycle_node(actor=make_actor(), node=node)
    restartable(node, status=NodeStatus.LOST.value)
    with pytest.raises(NodeNotRestartable, match="not up"):
        recycle_node(actor=make_actor(), node=node)


def test_trouble_with_one_node_does_not_stop_the_others(
    node: Node, version: Version, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    other = restartable(make_node(base_revision=version.base_revision), tainted=True)
    restartable(node, tainted=True)
    snapshots: list[Any] = []

    def trouble_with_the_first(snapshot: Any, *args: Any, **kwargs: Any) -> Any:
        snapshots.append(snapshot)
        if len(snapshots) == 1:
            raise RuntimeError
        return decide_node(snapshot, *args, **kwargs)

    monkeypatch.setattr("cachecontrol.services.lifecycle.decide_node", trouble_with_the_first)
    tend(node)
    assert Node.objects.filter(pk__in=[node.pk, other.pk], recycling_since__isnull=False).count() == 1
    assert "left to the next sweep" in caplog.text
