from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cachecontrol.lifecycle import (
    AbandonRecycle,
    EndRecycle,
    Leave,
    MarkLost,
    NodeSnapshot,
    NodeTiming,
    RaiseAlarm,
    StartRecycle,
    decide_node,
    restart_due,
)
from cachecontrol.states import NodeStatus

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
TIMING = NodeTiming(timeout=timedelta(seconds=15), drain=timedelta(seconds=5), recycle=timedelta(minutes=10))


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


SOUND = NodeSnapshot(status=NodeStatus.UP, last_seen_at=ago(1), boot_id="boot-1", restartable=True)
TAINTED = replace(SOUND, tainted=True)
RECYCLING = replace(TAINTED, recycling_since=ago(5), recycling_boot_id="boot-1", recycles=1, recycle_after=NOW)


def act(node: NodeSnapshot) -> object:
    return decide_node(node, NOW, timing=TIMING)


def due(node: NodeSnapshot) -> str | None:
    return restart_due(node, NOW, timing=TIMING)


def test_a_silent_node_is_lost_and_only_once() -> None:
    assert isinstance(act(replace(SOUND, last_seen_at=ago(14))), Leave)
    assert act(replace(SOUND, last_seen_at=ago(16))) == MarkLost()
    assert isinstance(act(replace(SOUND, status=NodeStatus.LOST, last_seen_at=ago(16))), Leave)
    assert isinstance(act(NodeSnapshot(status=NodeStatus.NEW, last_seen_at=None)), Leave)


@pytest.mark.parametrize("trouble", ["tainted", "poisoned"])
def test_an_unsound_engine_is_restarted_at_once(trouble: str) -> None:
    assert act(replace(SOUND, **{trouble: True})) == StartRecycle(recycles=1, next_after=NOW + timedelta(minutes=1))  # type: ignore[arg-type]
    assert isinstance(act(SOUND), Leave)


def test_an_agent_that_can_not_restart_its_engine_is_an_alarm_and_only_once() -> None:
    helpless = replace(TAINTED, restartable=False)
    assert act(helpless) == RaiseAlarm()
    assert isinstance(act(replace(helpless, is_stuck=True)), Leave)


def test_restarts_that_do_not_help_come_later_and_later() -> None:
    node, now, pauses = TAINTED, NOW, []
    for _try in range(9):
        decision = decide_node(node, now, timing=TIMING)
        assert isinstance(decision, StartRecycle)
        pauses.append((decision.next_after - now).total_seconds() / 60)
        node = replace(node, recycles=decision.recycles, recycle_after=decision.next_after, last_seen_at=now)
        early = decision.next_after - timedelta(seconds=1)
        assert isinstance(decide_node(replace(node, last_seen_at=early), early, timing=TIMING), Leave)
        now = decision.next_after
        node = replace(node, last_seen_at=now)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_after_a_good_hour_the_next_restart_is_the_first_again() -> None:
    worn = replace(TAINTED, recycles=7, recycle_after=ago(3601))
    assert act(worn) == StartRecycle(recycles=1, next_after=NOW + timedelta(minutes=1))


def test_nodes_of_a_pool_take_turns_unless_their_answers_can_not_be_trusted() -> None:
    assert isinstance(act(replace(TAINTED, is_pool_recycling=True)), Leave)
    assert isinstance(act(replace(TAINTED, is_pool_recycling=True, poisoned=True)), StartRecycle)


def test_nothing_is_restarted_on_a_node_that_is_away() -> None:
    assert isinstance(act(replace(TAINTED, status=NodeStatus.LOST)), Leave)


def test_a_restart_is_over_when_the_engine_has_another_boot_id() -> None:
    assert isinstance(act(RECYCLING), Leave)
    assert isinstance(act(replace(RECYCLING, boot_id="")), Leave)
    assert act(replace(RECYCLING, boot_id="boot-2")) == EndRecycle()


def test_a_restart_that_does_not_happen_is_given_up_and_the_node_answers_for_a_while() -> None:
    for recycles, minutes in ((1, 1), (3, 4), (9, 60)):
        futile = replace(RECYCLING, recycling_since=ago(601), recycles=recycles, recycle_after=ago(60))
        assert act(futile) == AbandonRecycle(next_after=NOW + timedelta(minutes=minutes))


def test_an_engine_that_was_never_seen_is_not_restarted() -> None:
    assert isinstance(act(replace(TAINTED, boot_id="")), Leave)


def test_the_agent_is_told_once_requests_had_time_to_end_and_for_one_life_of_the_engine() -> None:
    assert due(replace(RECYCLING, recycling_since=ago(4))) is None
    assert due(RECYCLING) == "boot-1"
    assert due(replace(RECYCLING, boot_id="boot-2")) is None
    assert due(TAINTED) is None


def test_a_poisoned_engine_is_not_drained() -> None:
    assert due(replace(RECYCLING, recycling_since=NOW, poisoned=True)) == "boot-1"
