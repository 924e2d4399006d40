import asyncio
import time
from uuid import UUID

import pytest

from gateway.errors import NotReady
from gateway.routing.changes import Changed, changed_snapshot
from gateway.routing.current import CurrentSnapshot
from gateway.routing.snapshot import Residency, RoutingRows, by_version
from gateway.routing.source import named_version
from tests.unit.gateway.worlds import V1, V2, World, acme_world, residency_row


def test_there_is_nothing_to_serve_from_before_the_first_snapshot() -> None:
    current = CurrentSnapshot()
    assert not current.is_ready
    assert current.age_s is None
    with pytest.raises(NotReady):
        current.get()


async def test_waiters_wake_on_a_snapshot_that_says_something_new() -> None:
    current = CurrentSnapshot()
    first = current.change()
    current.publish(acme_world().snapshot())
    assert first.done()
    second = current.change()
    current.publish(acme_world().snapshot())
    assert not second.done()
    world = acme_world()
    world.aliases[0] = ("acme", "support", V2, 2)
    current.publish(world.snapshot())
    assert second.done()


async def test_all_waiters_share_one_future() -> None:
    current = CurrentSnapshot()
    assert current.change() is current.change()


async def test_an_unchanged_read_still_makes_the_snapshot_younger() -> None:
    current = CurrentSnapshot()
    current.publish(acme_world().snapshot())
    await asyncio.sleep(0.02)
    assert current.age_s is not None
    before = current.age_s
    current.publish(acme_world().snapshot())
    assert current.age_s < before


async def test_a_revocation_holds_before_and_after_a_read_that_did_not_know_of_it() -> None:
    current = CurrentSnapshot()
    current.revoke(V1)
    current.publish(acme_world().snapshot())
    assert not current.get().serves(V1)
    assert current.get().serves(V2)
    woken = current.change()
    current.revoke(V2)
    assert woken.done()
    current.publish(acme_world().snapshot())
    assert not current.get().serves(V2)


async def test_a_revocation_of_what_is_unknown_changes_nothing() -> None:
    current = CurrentSnapshot()
    current.publish(acme_world().snapshot())
    before, change = current.get(), current.change()
    current.revoke(UUID(int=77))
    assert current.get() is before
    assert not change.done()


@pytest.mark.parametrize("payload", ["versions", "revoked", "revoked:", "revoked:x", "aliases:" + str(V1)])
def test_a_notification_that_names_no_revoked_version_revokes_nothing(payload: str) -> None:
    assert named_version(payload, "revoked") is None


def test_a_notification_names_the_revoked_version() -> None:
    assert named_version(f"revoked:{V1}", "revoked") == V1


def elsewhere(world: World) -> dict[UUID, tuple[Residency, ...]]:
    """V1 on another node than the world has it."""
    return by_version([residency_row("n2", world.versions[0])])


def test_what_was_told_of_one_version_is_in_force_at_once_and_leaves_the_others() -> None:
    current, world = CurrentSnapshot(), acme_world()
    world.residencies.append(residency_row("n1", world.versions[1]))
    current.publish(world.snapshot())
    current.tell(elsewhere(world), read_at=time.monotonic())
    assert [residency.node for residency in current.get().residencies[V1]] == ["n2"]
    assert [residency.node for residency in current.get().residencies[V2]] == ["n1"]


def test_a_read_that_began_before_does_not_undo_what_was_told_and_a_later_one_does() -> None:
    current, world = CurrentSnapshot(), acme_world()
    current.publish(world.snapshot(), read_at=1.0)
    current.tell(elsewhere(world), read_at=3.0)
    current.publish(world.snapshot(), read_at=2.0)
    assert current.get().residencies[V1][0].node == "n2"
    current.publish(world.snapshot(), read_at=4.0)
    assert current.get().residencies[V1][0].node == "n1"


async def test_a_new_estimate_of_a_tier_wakes_nobody_and_is_known() -> None:
    current, world = CurrentSnapshot(), acme_world()
    current.publish(world.snapshot())
    waiting = current.change()
    world.residencies = [(*residency_row("n1", world.versions[0]), "cpu")]
    current.publish(world.snapshot())
    assert not waiting.done()
    assert current.get().residencies[V1][0].tier == "cpu"


def test_what_was_kept_on_disk_is_served_until_the_database_was_read() -> None:
    current = CurrentSnapshot()
    assert current.source is None
    current.revoke(V1)
    current.start_from(acme_world().snapshot(), age_s=30)
    assert current.source == "disk"
    assert current.age_s is not None
    assert 30 <= current.age_s < 60
    assert not current.get().serves(V1), "what was heard before is not lost by it"
    world = acme_world()
    world.aliases.clear()
    current.publish(world.snapshot())
    assert current.source == "database"
    assert current.age_s < 30
    current.start_from(acme_world().snapshot(), age_s=0)
    assert current.get().alias("acme", "support") is None


def test_a_delta_on_what_is_revoked_keeps_it_so_though_its_rows_were_read_before() -> None:
    current, before = CurrentSnapshot(), acme_world().snapshot()
    current.publish(before)
    current.revoke(V1)
    stale = RoutingRows(versions=[acme_world().versions[0]])
    current.publish(changed_snapshot(current.get(), Changed.read([("versions", str(V1))]), stale))
    assert not current.get().serves(V1)


def test_a_notification_names_the_loaded_version() -> None:
    assert named_version(f"loaded:{V1}", "loaded") == V1
    assert named_version(f"revoked:{V1}", "loaded") is None
    current = CurrentSnapshot()
    current.hurry(V1)
    current.hurry(V1)
    assert current.take_hurried() == (V1,)
    assert current.take_hurried() == ()
