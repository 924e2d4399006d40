import asyncio
import time
from itertools import pairwise
from uuid import UUID

import pytest

from gateway.cold import ColdLoads
from gateway.demand import Demand, DemandAnswer, DemandState
from gateway.errors import (
    DiskFull,
    EngineFull,
    LoadFailed,
    LoadRefused,
    LoadShed,
    NoCapacity,
    NoNode,
    NotWarmInTime,
    OverQuota,
    TooManyWaiting,
    Unavailable,
    VersionRevoked,
)
from gateway.routing.current import CurrentSnapshot
from gateway.waiting.room import WaitingRoom
from tests.unit.gateway.worlds import V1, V2, acme_world


class Plane:
    """A control plane with a fixed answer, and the warm set that follows from it."""

    def __init__(self, state: DemandState = DemandState.LOADING) -> None:
        self.state = state
        self.asked: list[UUID] = []
        self.demands: list[Demand] = []
        self.tier: str | None = None
        self.code = ""
        self.retry_after_s: int | None = None
        self.wait_s: float | None = None
        self.in_flight: tuple[UUID, ...] = ()
        self.warm: set[UUID] = set()
        self.current = CurrentSnapshot()
        self.room = WaitingRoom(most=1000, most_each=1000)
        self.cold = ColdLoads(
            demand=self,
            current=self.current,
            is_warm=self.warm.__contains__,
            in_flight=lambda: self.in_flight,
            room=self.room,
            repeat_s=0.1,
            look_s=0.02,
        )

    async def ask(self, demand: Demand) -> DemandAnswer:
        self.asked.append(demand.version_id)
        self.demands.append(demand)
        await asyncio.sleep(0)
        return DemandAnswer(
            self.state, code=self.code, tier=self.tier, retry_after_s=self.retry_after_s, wait_s=self.wait_s
        )

    async def wait(self, version_id: UUID = V1, *, seconds: float = 1.0, tenant: str = "acme") -> str:
        return await self.cold.wait(
            version_id, tenant=tenant, arrived=time.monotonic(), longest_s=seconds, is_wanted=lambda: True
        )


async def test_five_hundred_requests_make_one_demand() -> None:
    plane = Plane()
    waiting = [asyncio.create_task(plane.wait()) for _ in range(500)]
    await asyncio.sleep(0.05)
    plane.warm.add(V1)
    await asyncio.gather(*waiting)
    assert plane.asked == [V1]
    assert len(plane.room) == 0


async def test_each_version_has_its_own_demand() -> None:
    plane = Plane()
    waiting = [asyncio.create_task(plane.wait(version)) for version in (V1, V2, V1)]
    await asyncio.sleep(0.02)
    plane.warm |= {V1, V2}
    await asyncio.gather(*waiting)
    assert sorted(plane.asked) == [V1, V2]


async def test_a_demand_is_repeated_while_anybody_waits() -> None:
    plane = Plane()
    with pytest.raises(NotWarmInTime) as caught:
        await plane.wait(seconds=0.35)
    assert 3 <= len(plane.asked) <= 5
    assert caught.value.retry_after_s


async def test_nothing_is_asked_any_more_when_nobody_waits() -> None:
    plane = Plane()
    with pytest.raises(NotWarmInTime):
        await plane.wait(seconds=0.05)
    asked = len(plane.asked)
    await asyncio.sleep(0.25)
    assert len(plane.asked) == asked
    assert not plane.cold._flights


async def test_a_later_request_starts_a_flight_of_its_own() -> None:
    plane = Plane()
    with pytest.raises(NotWarmInTime):
        await plane.wait(seconds=0.05)
    asked = len(plane.asked)
    plane.warm.add(V1)
    await plane.wait()
    assert len(plane.asked) == asked + 1


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (DemandState.NO_NODE, NoNode),
        (DemandState.NO_CAPACITY, NoCapacity),
        (DemandState.REFUSED, LoadRefused),
        (DemandState.FAILED, LoadFailed),
        (DemandState.SHED, LoadShed),
    ],
)
async def test_a_no_of_the_control_plane_ends_every_wait_at_once(state: DemandState, kind: type[Unavailable]) -> None:
    plane = Plane(state)
    async with asyncio.timeout(60):
        results = await asyncio.gather(*(plane.wait(seconds=600) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [kind] * 3
    assert all(isinstance(result, Unavailable) and result.retry_after_s for result in results)
    assert len(plane.asked) == 1


@pytest.mark.parametrize(
    ("state", "code", "kind"),
    [
        (DemandState.NO_CAPACITY, "disk_full", DiskFull),
        (DemandState.NO_CAPACITY, "engine_full", EngineFull),
        (DemandState.NO_CAPACITY, "queue_full", LoadShed),
        (DemandState.SHED, "over_quota", OverQuota),
        (DemandState.NO_CAPACITY, "something_new", NoCapacity),
    ],
)
async def test_a_no_says_what_was_short(state: DemandState, code: str, kind: type[Unavailable]) -> None:
    plane = Plane(state)
    plane.code = code
    with pytest.raises(kind) as caught:
        await plane.wait()
    assert type(caught.value) is kind


async def test_a_control_plane_out_of_reach_is_asked_again_and_then_named() -> None:
    plane = Plane(DemandState.UNREACHABLE)
    with pytest.raises(NotWarmInTime, match="can't be reached"):
        await plane.wait(seconds=0.25)
    assert len(plane.asked) >= 2


async def test_a_version_loaded_there_and_unknown_here_asks_for_a_fresh_read() -> None:
    plane = Plane(DemandState.LOADED)
    with pytest.raises(NotWarmInTime):
        await plane.wait(seconds=0.05)
    assert plane.current.wanted.is_set()


async def test_a_snapshot_wakes_the_wait() -> None:
    plane = Plane()
    plane.cold._look_s = 60
    waiting = asyncio.create_task(plane.wait(seconds=5))
    await asyncio.sleep(0.02)
    plane.warm.add(V1)
    plane.current.publish(acme_world().snapshot())
    await asyncio.wait_for(waiting, 0.05)


async def test_a_version_that_is_not_wanted_any_more_ends_the_wait() -> None:
    plane = Plane()
    wanted = [True]
    waiting = asyncio.create_task(
        plane.cold.wait(V1, tenant="acme", arrived=time.monotonic(), longest_s=5, is_wanted=lambda: wanted[0]),
    )
    await asyncio.sleep(0.02)
    wanted[0] = False
    plane.current.publish(acme_world().snapshot())
    await asyncio.wait_for(waiting, 0.5)
    assert not plane.cold._flights


async def test_a_revocation_during_the_wait_passes_through() -> None:
    plane = Plane()

    def is_wanted() -> bool:
        if plane.current.is_ready:
            raise VersionRevoked("revoked")
        return True

    waiting = asyncio.create_task(
        plane.cold.wait(V1, tenant="acme", arrived=time.monotonic(), longest_s=5, is_wanted=is_wanted)
    )
    await asyncio.sleep(0.02)
    plane.current.publish(acme_world().snapshot())
    with pytest.raises(VersionRevoked):
        await waiting


async def test_waiting_requests_have_a_bound() -> None:
    plane = Plane()
    plane.room._most = 2
    waiting = [asyncio.create_task(plane.wait(seconds=0.1)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyWaiting):
        await plane.wait()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert len(plane.room) == 0


async def test_a_cancelled_request_leaves_the_others_waiting() -> None:
    plane = Plane()
    first, second = asyncio.create_task(plane.wait()), asyncio.create_task(plane.wait())
    await asyncio.sleep(0.02)
    first.cancel()
    await asyncio.sleep(0.02)
    plane.warm.add(V1)
    await second
    assert first.cancelled()
    assert len(plane.asked) == 1


async def test_one_tenant_leaves_waiting_places_to_others() -> None:
    plane = Plane()
    plane.room._most_each = 2
    waiting = [asyncio.create_task(plane.wait(tenant="acme")) for _ in range(2)]
    await asyncio.sleep(0.02)
    with pytest.raises(TooManyWaiting):
        await plane.wait(tenant="acme")
    waiting.append(asyncio.create_task(plane.wait(V2, tenant="other")))
    await asyncio.sleep(0.02)
    assert len(plane.room) == 3
    plane.warm |= {V1, V2}
    await asyncio.gather(*waiting)
    assert len(plane.room) == 0


async def test_a_demand_tells_how_many_wait_how_long_and_what_answers_now() -> None:
    plane = Plane()
    plane.in_flight = (V2,)
    waiting = [asyncio.create_task(plane.wait(seconds=seconds)) for seconds in (1, 5, 3)]
    await asyncio.sleep(0.02)
    plane.warm.add(V1)
    await asyncio.gather(*waiting)
    (demand,) = plane.demands
    assert (demand.version_id, demand.waiting, demand.in_flight) == (V1, 3, (V2,))
    assert 4_000 < (demand.deadline_ms or 0) <= 5_000


async def test_a_queued_load_is_waited_for_like_one_under_way() -> None:
    plane = Plane(DemandState.QUEUED)
    waiting = asyncio.create_task(plane.wait(seconds=5))
    for _look in range(400):
        if len(plane.asked) < 2:
            await asyncio.sleep(0.01)
    assert len(plane.asked) >= 2
    plane.warm.add(V1)
    await waiting
    assert set(plane.asked) == {V1}


async def test_a_load_that_was_shed_says_when_to_come_again() -> None:
    plane = Plane(DemandState.SHED)
    plane.retry_after_s = 17
    with pytest.raises(LoadShed) as caught:
        await plane.wait()
    assert caught.value.retry_after_s == 17


@pytest.mark.parametrize(
    ("state", "tier", "was"),
    [
        (DemandState.LOADING, "disk", "disk"),
        (DemandState.QUEUED, "remote", "remote"),
        (DemandState.LOADING, None, "remote"),
        (DemandState.LOADED, None, ""),
    ],
)
async def test_who_waited_is_told_where_the_version_was(state: DemandState, tier: str | None, was: str) -> None:
    plane = Plane(state)
    plane.tier = tier
    waiting = asyncio.create_task(plane.wait())
    await asyncio.sleep(0.02)
    plane.warm.add(V1)
    assert await waiting == was


async def test_who_waits_gives_up_when_the_tenants_class_of_service_says_so() -> None:
    plane = Plane()
    plane.wait_s = 0.15
    began = time.monotonic()
    async with asyncio.timeout(60):
        with pytest.raises(NotWarmInTime):
            await plane.wait(seconds=600)
    assert time.monotonic() - began > 0.1
    last = plane.demands[-1].deadline_ms
    assert last is not None
    assert last <= 150


async def test_nobody_waits_longer_than_the_gateway_allows_whatever_the_class_of_service() -> None:
    plane = Plane()
    plane.wait_s = 60.0
    with pytest.raises(NotWarmInTime):
        await plane.wait(seconds=0.05)


async def test_what_is_wanted_by_nobody_who_waits_is_asked_for_once_in_a_while() -> None:
    plane = Plane()
    for _ in range(20):
        plane.cold.want(V1)
        await asyncio.sleep(0)
    assert plane.asked == [V1]
    assert (plane.demands[0].waiting, plane.demands[0].deadline_ms) == (0, None)
    await asyncio.sleep(0.25)
    assert not plane.cold._flights
    plane.cold.want(V1)
    await asyncio.sleep(0.01)
    assert plane.asked == [V1, V1]


async def test_who_waits_joins_what_was_wanted_already() -> None:
    plane = Plane()
    plane.cold.want(V1)
    await asyncio.sleep(0.01)
    waiting = asyncio.create_task(plane.wait())
    await asyncio.sleep(0.01)
    plane.warm.add(V1)
    await waiting
    assert plane.asked == [V1]


async def test_those_who_were_waiting_go_on_in_groups_so_that_others_have_their_turn() -> None:
    plane = Plane()
    waiting = [asyncio.create_task(plane.wait()) for _ in range(64)]
    await asyncio.sleep(0.01)
    plane.warm.add(V1)
    done_at_each_turn: list[int] = []
    while not all(task.done() for task in waiting):
        await asyncio.sleep(0)
        done_at_each_turn.append(sum(task.done() for task in waiting))
    steps = [after - before for before, after in pairwise(done_at_each_turn)]
    assert max(steps) <= 8
