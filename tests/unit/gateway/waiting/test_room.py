import asyncio
import time

import pytest

from gateway.errors import NotWarmInTime, TooManyWaiting, VersionRevoked
from gateway.waiting.gate import Gate
from gateway.waiting.room import Waiter, WaitingRoom


def waiter(tenant: str = "acme", *, is_wanted: bool = True) -> Waiter:
    now = time.monotonic()
    return Waiter(tenant, arrived=now, until=now + 60, is_wanted=lambda: is_wanted, gate=Gate())


def enter(room: WaitingRoom, tenant: str, count: int) -> list[Waiter]:
    waiters = [waiter(tenant) for _ in range(count)]
    for one in waiters:
        room.enter(one)
    return waiters


async def test_a_full_room_gives_a_place_of_the_largest_tenant_to_one_that_has_fewer() -> None:
    room = WaitingRoom(most=4, most_each=4)
    large = enter(room, "large", 4)
    small = enter(room, "small", 1)
    assert len(room) == 4
    assert (room.of("large"), room.of("small")) == (3, 1)
    with pytest.raises(TooManyWaiting):
        await large[-1].done
    assert not any(one.done.done() for one in (*large[:-1], *small))


async def test_it_ends_with_equal_parts_and_takes_from_nobody_below_them() -> None:
    room = WaitingRoom(most=4, most_each=4)
    enter(room, "large", 4)
    enter(room, "small", 2)
    with pytest.raises(TooManyWaiting):
        enter(room, "small", 1)
    with pytest.raises(TooManyWaiting):
        enter(room, "large", 1)
    assert (room.of("large"), room.of("small")) == (2, 2)


async def test_a_tenant_has_its_own_bound_in_an_empty_room_too() -> None:
    room = WaitingRoom(most=10, most_each=2)
    enter(room, "acme", 2)
    with pytest.raises(TooManyWaiting):
        enter(room, "acme", 1)
    enter(room, "other", 2)


async def test_who_had_to_go_gives_no_place_back_twice() -> None:
    room = WaitingRoom(most=2, most_each=2)
    first, second = enter(room, "large", 2)
    (small,) = enter(room, "small", 1)
    for one in (second, first, small, small):
        room.leave(one)
    assert len(room) == 0


async def test_a_waiter_fails_at_its_end_and_only_at_the_last_one_that_was_set() -> None:
    one = waiter()
    one.end_at(time.monotonic() + 0.01, lambda: NotWarmInTime("early"))
    one.end_at(time.monotonic() + 0.05, lambda: NotWarmInTime("late"))
    began = time.monotonic()
    with pytest.raises(NotWarmInTime, match="late"):
        await asyncio.wait_for(one.done, 1)
    assert time.monotonic() - began > 0.04


async def test_a_waiter_that_is_not_wanted_any_more_goes_on_or_fails_as_it_is_told() -> None:
    gone, kept = waiter(is_wanted=False), waiter()
    gone.look()
    kept.look()
    await asyncio.wait_for(gone.done, 1)
    assert not kept.done.done()

    def revoked() -> bool:
        raise VersionRevoked("x")

    failing = Waiter("acme", arrived=0, until=0, is_wanted=revoked, gate=Gate())
    failing.look()
    with pytest.raises(VersionRevoked):
        await failing.done


async def test_hundreds_whose_time_is_up_at_once_leave_in_groups_with_turns_for_others_between() -> None:
    room = WaitingRoom(most=500, most_each=500)
    crowd = [Waiter("acme", arrived=0, until=0, is_wanted=lambda: True, gate=room.gate) for _ in range(500)]
    for one in crowd:
        one.end_at(time.monotonic(), lambda: NotWarmInTime("late"))
    most, before = 0, 0
    async with asyncio.timeout(5):
        while before < len(crowd):
            await asyncio.sleep(0)
            now = sum(one.done.done() for one in crowd)
            most, before = max(most, now - before), now
    assert 0 < most <= 8
    for one in crowd:
        with pytest.raises(NotWarmInTime):
            await one.done
