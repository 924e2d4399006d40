"""Two engines behind real connections: the one that is slow to begin is told to stop."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gateway.app import create_app
from gateway.path.hedging import Hedging
from gateway.settings import Settings
from gateway.wire.asgi import Send
from tests.integration.gateway.conftest import acme_client, ready
from tests.integration.gateway.stubs import Routing, StubEngine, serving, tell_model, until
from tests.unit.gateway.worlds import acme_world, node_row, residency_row

BODY: dict[str, Any] = {"model": "support", "messages": [{"role": "user", "content": "hi"}]}
METRICS = {"authorization": "Bearer metrics"}


class Turns:
    """Whichever engine is asked first hangs, the other one answers."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, body: dict[str, Any], send: Send) -> None:
        self.asked += 1
        if self.asked == 1:
            await asyncio.Event().wait()
        await tell_model(body, send)


@pytest.fixture(params=["llhttp", "aiohttp"])
async def gateway(
    request: pytest.FixtureRequest, gateway_settings: Settings, routing: Routing
) -> AsyncIterator[tuple[str, tuple[StubEngine, StubEngine]]]:
    turns, version = Turns(), acme_world().versions[0]
    first, second = StubEngine(turns), StubEngine(turns)
    settings = replace(
        gateway_settings, hedging=Hedging(after_s=0.1, share=1.0), client=request.param, metrics_token="metrics"
    )
    async with serving(first) as first.url, serving(second) as second.url:
        await routing.set_nodes(node_row("n1", url=first.url), node_row("n2", url=second.url))
        await routing.set_residencies(residency_row("n1", version), residency_row("n2", version))
        async with serving(create_app(settings), lifespan="on") as url:
            await ready(url)
            yield url, (first, second)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_engine_that_is_slow_to_begin_is_told_to_stop_and_the_other_one_answers(
    gateway: tuple[str, tuple[StubEngine, StubEngine]], routing: Routing, stream: bool
) -> None:
    url, engines = gateway
    async with acme_client(url) as client:
        answer = await client.post("/v1/chat/completions", json={**BODY, "stream": stream})
        page = (await client.get("/metrics", headers=METRICS)).text
    assert answer.status_code == 200
    winner = answer.headers["x-lorekeeper-node"]
    slow, fast = engines if winner == "n2" else reversed(engines)
    assert (len(slow.bodies), len(fast.bodies)) == (1, 1)

    async def is_told() -> bool:
        return slow.cancelled.is_set()

    await until(is_told)
    assert not fast.cancelled.is_set()
    assert "lorekeeper_gateway_hedges 1.0" in page
    assert "lorekeeper_gateway_hedges_won 1.0" in page
    (row,) = await routing.records_until(1)
    assert (row["node"], row["status"], row["retries"]) == (winner, 200, 0)
