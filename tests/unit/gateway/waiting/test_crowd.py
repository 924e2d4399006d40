"""Who waits for a slot of a node, and what it may claim."""

import asyncio
import time
from uuid import UUID

import pytest

from gateway.waiting import crowd as crowds
from gateway.waiting.crowd import Crowd
from gateway.waiting.room import WaitingRoom

MINE, ANOTHER = UUID(int=1), UUID(int=2)


async def test_a_claim_holds_until_its_claimant_has_come_to_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(crowds, "_LOOK_S", 0.001)
    crowd = Crowd(WaitingRoom(most=10, most_each=10))
    claimed, has_room = asyncio.Event(), False
    kept_out: list[bool] = []

    def room() -> bool:
        if crowd.has_claims:
            claimed.set()
        return has_room

    async def claim() -> None:
        await crowd.wait(
            MINE,
            tenant="acme",
            arrived=time.monotonic(),
            longest_s=30,
            nodes=("n1",),
            has_room=room,
            is_wanted=lambda: True,
        )
        kept_out.append(crowd.keeps_out("n1", ANOTHER))

    claimants = [asyncio.create_task(claim()) for _ in range(2)]
    async with asyncio.timeout(10):
        await claimed.wait()
        has_room = True
        crowd.call()
        # A request that comes between the look and those that it lets go.
        asyncio.get_running_loop().call_soon(lambda: kept_out.append(crowd.keeps_out("n1", ANOTHER)))
        await asyncio.gather(*claimants)
    assert kept_out == [True, True, False]
    assert not crowd.has_claims
