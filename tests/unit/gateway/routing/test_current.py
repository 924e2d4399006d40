import asyncio

import pytest

from gateway.errors import NotReady
from gateway.routing.current import CurrentSnapshot
from tests.unit.gateway.worlds import V2, acme_world


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
