import asyncio
from uuid import UUID

import pytest

from gateway.errors import NotReady
from gateway.routing.current import CurrentSnapshot
from gateway.routing.source import revoked_version
from tests.unit.gateway.worlds import V1, V2, acme_world


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
    assert revoked_version(payload) is None


def test_a_notification_names_the_revoked_version() -> None:
    assert revoked_version(f"revoked:{V1}") == V1
