from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cachecontrol.reconcile import (
    Forget,
    SendEvict,
    SendFetch,
    SendWarm,
    Snapshot,
    StartDrain,
    Timing,
    Wait,
    Withdraw,
    decide,
)
from cachecontrol.states import Desired, NodeStatus, Observed

NOW = datetime(2026, 7, 4, 12, tzinfo=UTC)
TIMING = Timing(command_deadline=timedelta(seconds=60), drain=timedelta(seconds=5), routing_stop=timedelta(seconds=0.3))
WANTED = Snapshot(
    desired=Desired.GPU,
    observed=Observed.ABSENT,
    generation=1,
    acted_generation=0,
    command_sent_at=None,
    retry_at=None,
    drain_until=None,
    state_changed_at=NOW - timedelta(minutes=10),
    is_servable=True,
    is_revoked=False,
    fits_node=True,
    node_status=NodeStatus.UP,
    engine_healthy=True,
    is_recycling=False,
    watches_use=False,
)
LOADED = replace(WANTED, observed=Observed.LOADED, acted_generation=1, command_sent_at=NOW - timedelta(minutes=9))
UNWANTED = replace(LOADED, desired=Desired.ABSENT, generation=2, command_sent_at=None)
DEMOTED = replace(UNWANTED, desired=Desired.DISK)
ABSENT = replace(UNWANTED, observed=Observed.ABSENT, acted_generation=2)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def act(snapshot: Snapshot) -> object:
    return decide(snapshot, NOW, timing=TIMING)


def test_what_is_wanted_and_not_there_is_sent_for() -> None:
    assert act(WANTED) == SendWarm()


def test_what_is_loaded_as_asked_is_left_alone() -> None:
    assert isinstance(act(LOADED), Wait)


def test_a_command_on_its_way_is_not_sent_twice() -> None:
    assert isinstance(act(replace(WANTED, command_sent_at=ago(59))), Wait)


def test_a_command_without_a_sign_of_life_is_sent_again() -> None:
    assert act(replace(WANTED, command_sent_at=ago(61))) == SendWarm()


def test_a_step_on_the_way_is_a_sign_of_life() -> None:
    fetching = replace(WANTED, observed=Observed.FETCHING, command_sent_at=ago(300), state_changed_at=ago(30))
    assert isinstance(act(fetching), Wait)
    assert act(replace(fetching, state_changed_at=ago(61))) == SendWarm()


@pytest.mark.parametrize("status", [NodeStatus.NEW, NodeStatus.LOST])
def test_nothing_is_sent_to_a_node_that_is_not_up(status: NodeStatus) -> None:
    assert isinstance(act(replace(WANTED, node_status=status)), Wait)


def test_nothing_is_sent_while_the_engine_is_not_healthy() -> None:
    assert isinstance(act(replace(WANTED, engine_healthy=False)), Wait)


def test_a_failure_for_good_is_left_until_it_is_wanted_again() -> None:
    failed = replace(WANTED, observed=Observed.FAILED, acted_generation=1)
    assert isinstance(act(failed), Wait)
    assert act(replace(failed, generation=2)) == SendWarm()


def test_a_failure_worth_another_try_waits_for_its_time() -> None:
    failed = replace(WANTED, observed=Observed.FAILED, acted_generation=1, generation=2, retry_at=NOW)
    assert act(failed) == SendWarm()
    assert isinstance(act(replace(failed, retry_at=NOW + timedelta(seconds=1))), Wait)


def test_a_restarted_engine_is_filled_again() -> None:
    assert act(replace(LOADED, observed=Observed.ON_DISK, generation=2, command_sent_at=None)) == SendWarm()


def test_a_withdrawn_version_is_not_wanted_any_more_at_once() -> None:
    assert isinstance(act(replace(LOADED, is_servable=False, is_revoked=True)), Withdraw)
    assert isinstance(act(replace(WANTED, is_servable=False, is_revoked=True)), Withdraw)


def test_what_does_not_fit_the_node_any_more_leaves_it() -> None:
    assert isinstance(act(replace(LOADED, fits_node=False)), Withdraw)


@pytest.mark.parametrize("observed", [Observed.LOADED, Observed.LOADING])
def test_leaving_begins_with_draining(observed: Observed) -> None:
    assert act(replace(UNWANTED, observed=observed)) == StartDrain(until=NOW + TIMING.drain)


def test_the_evict_command_waits_for_the_drain() -> None:
    draining = replace(UNWANTED, observed=Observed.DRAINING, drain_until=NOW + timedelta(seconds=1))
    assert isinstance(act(draining), Wait)
    assert act(replace(draining, drain_until=NOW)) == SendEvict()


def test_what_is_revoked_is_unloaded_without_waiting_for_the_drain() -> None:
    revoked = replace(UNWANTED, observed=Observed.LOADED, is_servable=False, is_revoked=True)
    assert act(revoked) == StartDrain(until=NOW)
    draining = replace(revoked, observed=Observed.DRAINING, drain_until=NOW + timedelta(seconds=4))
    assert act(draining) == SendEvict()


def test_a_lost_evict_command_is_sent_again() -> None:
    sent = replace(UNWANTED, observed=Observed.DRAINING, drain_until=ago(70), command_sent_at=ago(61))
    assert act(replace(sent, state_changed_at=ago(75))) == SendEvict()
    assert isinstance(act(replace(sent, command_sent_at=ago(10))), Wait)


def test_files_without_a_loaded_name_are_evicted_without_a_drain() -> None:
    assert act(replace(UNWANTED, observed=Observed.ON_DISK)) == SendEvict()


def test_what_is_wanted_again_while_draining_is_sent_for() -> None:
    assert act(replace(UNWANTED, desired=Desired.GPU, observed=Observed.DRAINING, generation=3)) == SendWarm()


def test_what_is_gone_is_kept_in_mind_unless_it_was_revoked() -> None:
    assert isinstance(act(ABSENT), Wait)
    assert act(replace(ABSENT, is_servable=False, is_revoked=True)) == Forget()


def test_a_revoked_version_is_not_forgotten_before_the_node_says_that_it_is_gone() -> None:
    assert act(replace(ABSENT, acted_generation=1, is_revoked=True)) == SendEvict()


def test_nothing_is_asked_of_an_engine_that_is_being_restarted() -> None:
    assert isinstance(act(replace(WANTED, is_recycling=True)), Wait)
    draining = replace(UNWANTED, observed=Observed.DRAINING, drain_until=NOW)
    assert isinstance(act(replace(draining, is_recycling=True)), Wait)


def test_where_the_node_sees_the_last_request_end_it_is_asked_as_soon_as_routing_has_stopped() -> None:
    assert act(replace(UNWANTED, watches_use=True)) == StartDrain(until=NOW + TIMING.routing_stop)
    revoked = replace(UNWANTED, watches_use=True, is_servable=False, is_revoked=True)
    assert act(revoked) == StartDrain(until=NOW)


def test_what_is_wanted_on_disk_alone_leaves_the_engine_in_the_safe_order_and_keeps_its_files() -> None:
    assert act(DEMOTED) == StartDrain(until=NOW + TIMING.drain)
    draining = replace(DEMOTED, observed=Observed.DRAINING, drain_until=NOW + timedelta(seconds=1))
    assert isinstance(act(draining), Wait)
    assert act(replace(draining, drain_until=NOW)) == SendEvict(keeps_files=True)
    assert isinstance(act(replace(DEMOTED, observed=Observed.ON_DISK, acted_generation=2)), Wait)


@pytest.mark.parametrize("observed", [Observed.ABSENT, Observed.FETCHING, Observed.ON_DISK, Observed.FAILED])
def test_what_is_wanted_on_disk_and_is_not_in_the_engine_is_fetched(observed: Observed) -> None:
    assert act(replace(DEMOTED, observed=observed)) == SendFetch()


def test_files_come_to_a_nodes_disk_whatever_its_engine_does() -> None:
    wanted = replace(WANTED, desired=Desired.DISK)
    assert act(replace(wanted, engine_healthy=False, is_recycling=True)) == SendFetch()
    assert isinstance(act(replace(wanted, node_status=NodeStatus.LOST)), Wait)


def test_a_fetch_that_failed_for_good_is_left_until_it_is_wanted_again() -> None:
    failed = replace(WANTED, desired=Desired.DISK, observed=Observed.FAILED, acted_generation=1)
    assert isinstance(act(failed), Wait)
    assert act(replace(failed, generation=2)) == SendFetch()


def test_a_withdrawn_version_is_not_wanted_on_disk_either() -> None:
    kept = replace(DEMOTED, observed=Observed.ON_DISK, acted_generation=2)
    assert isinstance(act(replace(kept, is_servable=False, is_revoked=True)), Withdraw)


def test_what_is_wanted_in_the_engine_again_is_sent_for_from_the_disk() -> None:
    assert act(replace(DEMOTED, desired=Desired.GPU, observed=Observed.ON_DISK, generation=3)) == SendWarm()
