"""Limits, canary sides, base models and failing nodes, over a real gateway, its database and stub engines."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest

from gateway.app import create_app
from gateway.nodes.health import HealthChecks, Pulse
from gateway.routing.breaker import RUN_OF_FAILURES
from gateway.routing.resolve import bucket
from gateway.settings import Settings
from gateway.wire.asgi import Receive, Scope, Send
from tests.integration.gateway.conftest import acme_client, ready
from tests.integration.gateway.stubs import Routing, StubEngine, serving, until, whole
from tests.unit.gateway.worlds import V1, V2, World, acme_world, node_row, residency_row

CHAT = {"model": "support", "messages": [{"role": "user", "content": "hello"}]}


def world(*engines: StubEngine) -> World:
    """V1 and v2 loaded on a node for each of these engines: n1, n2, ..."""
    made = acme_world()
    made.nodes = [node_row(f"n{number}", url=engine.url) for number, engine in enumerate(engines, 1)]
    made.residencies = [residency_row(node[0], version) for node in made.nodes for version in made.versions[:2]]
    return made


async def ask(client: httpx.AsyncClient, model: str = "support", **headers: str) -> httpx.Response:
    return await client.post("/v1/chat/completions", json={**CHAT, "model": model}, headers=headers)


async def fail(_: dict[str, Any], send: Send) -> None:
    await whole(send, {"error": "out of memory"}, status=500)


@pytest.fixture
async def engine(routing: Routing) -> Any:
    stub = StubEngine()
    async with serving(stub) as url:
        stub.url = url
        yield stub


async def test_what_a_tenant_has_used_up_is_refused_in_openais_form(
    routing: Routing, engine: StubEngine, gateway_settings: Settings
) -> None:
    limited = world(engine)
    limited.rules = [("acme", 2, 100_000, None, None, [], True)]
    await routing.put(limited)
    async with serving(create_app(gateway_settings), lifespan="on") as url:
        await ready(url)
        async with acme_client(url) as client:
            answers = [await ask(client) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers["x-ratelimit-remaining-requests"] for answer in answers] == ["1", "0", "0"]
    assert 0 < int(answers[2].headers["retry-after"]) <= 30
    assert answers[2].json()["error"]["type"] == "requests"
    assert len(engine.bodies) == 2


async def test_a_body_that_comes_in_chunks_is_estimated_like_any_other(
    routing: Routing, engine: StubEngine, gateway_settings: Settings
) -> None:
    limited = world(engine)
    limited.rules = [("acme", None, 100_000, None, None, [], True)]
    await routing.put(limited)
    body = json.dumps({**CHAT, "user": "x" * 40_000}).encode()

    async def chunks() -> AsyncIterator[bytes]:
        yield body

    async with serving(create_app(gateway_settings), lifespan="on") as url:
        await ready(url)
        async with acme_client(url) as client:
            media = {"content-type": "application/json"}
            answer = await client.post("/v1/chat/completions", content=chunks(), headers=media)
    assert answer.status_code == 200
    assert int(answer.headers["x-ratelimit-remaining-tokens"]) < 90_000


async def test_a_session_is_answered_by_its_side_and_a_base_model_by_its_name(
    routing: Routing, engine: StubEngine, gateway_settings: Settings
) -> None:
    split = world(engine)
    split.aliases[0] = ("acme", "support", V1, 1, V2, 5000, "salt-1", [], [], None, 0)
    split.rules = [("acme", None, None, None, None, ["base"], True)]
    await routing.put(split)
    async with serving(create_app(gateway_settings), lifespan="on") as url:
        await ready(url)
        async with acme_client(url) as client:
            for number in range(12):
                answer = await ask(client, **{"x-lorekeeper-session": f"user-{number}"})
                side = "v2" if bucket("salt-1", f"user-{number}") < 5000 else "v1"
                assert answer.headers["x-lorekeeper-version"] == f"acme/support-tone@{side}"
            base = await ask(client, "base")
    assert base.status_code == 200
    assert base.headers["x-lorekeeper-version"] == "base"
    assert engine.bodies[-1]["model"] == "base"


async def test_a_node_that_only_fails_is_passed_over_after_a_run_of_failures(
    routing: Routing, engine: StubEngine, gateway_settings: Settings
) -> None:
    sick = StubEngine(answer=fail)
    async with serving(sick) as sick.url:
        await routing.put(world(engine, sick))
        async with serving(create_app(gateway_settings), lifespan="on") as url:
            await ready(url)
            async with acme_client(url) as client:
                answers = [await ask(client) for _ in range(60)]
    seen = Counter(answer.headers["x-lorekeeper-node"] for answer in answers if answer.status_code == 200)
    assert seen["n1"] >= 60 - RUN_OF_FAILURES
    assert len(sick.bodies) <= RUN_OF_FAILURES + 2  # and a trial or two, should this take long


async def test_an_engine_that_hangs_is_found_out_though_it_has_every_connection_and_no_other_is_blamed(
    routing: Routing, engine: StubEngine, gateway_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.app.HealthChecks", partial(HealthChecks, pulse=Pulse(every_s=0.02, timeout_s=0.1)))

    hangs = asyncio.Event()

    async def hang(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["method"] == "GET" and not hangs.is_set():
            await whole(send, {})
            return
        hangs.set()
        await asyncio.Event().wait()

    async with serving(hang) as hung:
        two = world(StubEngine(url=hung), engine)
        two.residencies = two.residencies[:2]
        await routing.put(two)
        settings = replace(gateway_settings, upstream_connections=1, metrics_token="m")
        async with serving(create_app(settings), lifespan="on") as url:
            await ready(url)
            async with acme_client(url) as client:
                asked = asyncio.create_task(ask(client))
                await asyncio.wait_for(hangs.wait(), 5)

                async def is_told(node: str, state: str) -> bool:
                    page = await client.get("/metrics", headers={"authorization": "Bearer m"})
                    return f'breaker{{node="{node}",state="{state}"}} 1.0' in page.text

                await until(partial(is_told, "n1", "down"))
                await asyncio.sleep(0.5)
                assert await is_told("n2", "closed")
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
