import asyncio
import time
from uuid import UUID

import pytest

from gateway.cold import ColdLoads
from gateway.demand import DemandAnswer, DemandState
from gateway.errors import (
    LoadFailed,
    LoadRefused,
    NoCapacity,
    NoNode,
    NotWarmInTime,
    TooManyWaiting,
    Unavailable,
    VersionRevoked,
)
from gateway.routing.current import CurrentSnapshot
from tests.unit.gateway.worlds import V1, V2, acme_world


class Plane:
    """A control plane with a fixed answer, and the warm set that follows from it."""

    def __init__(self, state: DemandState = DemandState.LOADING) -> None:
        self.state = state
        self.asked: list[UUID] = []
        self.warm: set[UUID] = set()
        self.current = CurrentSnapshot()
        self.cold = ColdLoads(
            demand=self,
            current=self.current,
            is_warm=self.warm.__contains__,
            max_waiting=1000,
            max_waiting_each=1000,
            repeat_s=0.1,
            look_s=0.02,
        )

    async def ask(self, version_id: UUID) -> DemandAnswer:
        self.asked.append(version_id)
        await asyncio.sleep(0)
        return DemandAnswer(self.state)

    async def wait(self, version_id: UUID = V1, *, seconds: float = 1.0, tenant: str = "acme") -> None:
        await self.cold.wait(version_id, tenant=tenant, until=time.monotonic() + seconds, is_wanted=lambda: True)


async def test_five_hundred_requests_make_one_demand() -> None:
    plane = Plane()
    waiting = [asyncio.create_task(plane.wait()) for _ in range(500)]
    await asyncio.sleep(0.05)
    plane.warm.add(V1)
    await asyncio.gather(*waiting)
    assert plane.asked == [V1]
    assert plane.cold.waiting == 0


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
    plane.warm.add(V1)
    await plane.wait()
    assert len(plane.asked) == 2


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (DemandState.NO_NODE, NoNode),
        (DemandState.NO_CAPACITY, NoCapacity),
        (DemandState.REFUSED, LoadRefused),
        (DemandState.FAILED, LoadFailed),
    ],
)
async def test_a_no_of_the_control_plane_ends_every_wait_at_once(state: DemandState, kind: type[Unavailable]) -> None:
    plane = Plane(state)
    began = time.monotonic()
    results = await asyncio.gather(*(plane.wait(seconds=5) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [kind] * 3
    assert all(isinstance(result, Unavailable) and result.retry_after_s for result in results)
    assert time.monotonic() - began < 1
    assert len(plane.asked) == 1


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
        plane.cold.wait(V1, tenant="acme", until=time.monotonic() + 5, is_wanted=lambda: wanted[0]),
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

    waiting = asyncio.create_task(plane.cold.wait(V1, tenant="acme", until=time.monotonic() + 5, is_wanted=is_wanted))
    await asyncio.sleep(0.02)
    plane.current.publish(acme_world().snapshot())
    with pytest.raises(VersionRevoked):
        await waiting


async def test_waiting_requests_have_a_bound() -> None:
    plane = Plane()
    plane.cold._max_waiting = 2
    waiting = [asyncio.create_task(plane.wait(seconds=0.1)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyWaiting):
        await plane.wait()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert plane.cold.waiting == 0


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
    plane.cold._max_waiting_each = 2
    waiting = [asyncio.create_task(plane.wait(tenant="acme")) for _ in range(2)]
    await asyncio.sleep(0.02)
    with pytest.raises(TooManyWaiting):
        await plane.wait(tenant="acme")
    waiting.append(asyncio.create_task(plane.wait(V2, tenant="other")))
    await asyncio.sleep(0.02)
    assert plane.cold.waiting == 3
    plane.warm |= {V1, V2}
    await asyncio.gather(*waiting)
    assert not plane.cold._waiting_by_tenant
