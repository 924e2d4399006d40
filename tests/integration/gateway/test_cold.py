import asyncio
import json
import time

import httpx
import pytest

from gateway.app import create_app
from gateway.settings import Settings
from tests.fakes.engine_vllm import FakeEngineServer
from tests.fakes.weights import Weights
from tests.integration.gateway.conftest import acme_client, ready
from tests.integration.gateway.stubs import Plane, Routing, StubEngine, serving, until
from tests.unit.gateway.worlds import ACME_KEY, V1, V2, acme_world, node_row, residency_row

CHAT = {"model": "support", "messages": [{"role": "user", "content": "hi"}]}
ENGINE_NAME = "lk-support-tone-v1-acme"


def load(engine: FakeEngineServer, name: str = ENGINE_NAME) -> None:
    """Put an adapter into the fake engine as if its agent had."""
    engine.state.names[name] = (engine.state.next_id, "nowhere")
    engine.state.cpu[engine.state.next_id] = Weights(digest="d", rank=8, zero=False, nan=False)
    engine.state.next_id += 1


@pytest.fixture
async def cold(client: httpx.AsyncClient, routing: Routing) -> httpx.AsyncClient:
    """A client of a gateway that sees the version loaded nowhere."""
    await routing.set_residencies()
    await asyncio.sleep(0.2)
    return client


async def plain_post(url: str) -> bytes:
    """One request on a connection of its own; the whole answer. (Cheaper than a client made for comfort.)"""
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps(CHAT).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ACME_KEY}\r\nconnection: close\r\n"
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_five_hundred_cold_requests_make_one_demand_and_are_all_answered(
    cold: httpx.AsyncClient, gateway_url: str, engine: StubEngine, plane: Plane, routing: Routing
) -> None:
    asked = [asyncio.create_task(plain_post(gateway_url)) for _ in range(500)]

    async def all_wait() -> bool:
        return bool((await cold.get("/readyz")).json()["waiting"] == 500)

    await until(all_wait, seconds=20)
    await routing.set_residencies(residency_row("n1", acme_world().versions[0]))
    began = time.monotonic()
    answers = await asyncio.gather(*asked)
    print(f"\n500 waiting requests were answered {time.monotonic() - began:.1f} s after the load")
    assert {answer.partition(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 200 OK"}
    assert all(b"x-lorekeeper-tier: remote\r\n" in answer for answer in answers)
    assert [demand["version_id"] for demand in plane.demands] == [str(V1)]
    assert plane.authorizations == ["Bearer lk_gateway"]
    assert len(await routing.records_until(500)) == 500


@pytest.mark.parametrize(
    ("state", "code"),
    [("no_node", "no_node"), ("no_capacity", "no_capacity"), ("refused", "load_refused"), ("failed", "load_failed")],
)
async def test_a_demand_that_is_turned_down_is_a_clear_503(
    cold: httpx.AsyncClient, engine: StubEngine, plane: Plane, state: str, code: str
) -> None:
    plane.state = state
    response = await cold.post("/v1/chat/completions", json=CHAT)
    assert (response.status_code, response.json()["error"]["code"]) == (503, code)
    assert int(response.headers["retry-after"]) > 0
    assert response.headers["x-lorekeeper-version"] == "acme/support-tone@v1"
    assert engine.bodies == []


async def test_a_load_whose_notification_is_lost_is_found_by_asking_again(
    cold: httpx.AsyncClient, plane: Plane, routing: Routing
) -> None:
    async def load_silently() -> None:
        await routing.set_residencies(residency_row("n1", acme_world().versions[0]), notify=False)
        plane.state = "loaded"

    plane.on_demand = load_silently
    response = await cold.post("/v1/chat/completions", json=CHAT)
    assert response.status_code == 200


async def test_a_control_plane_that_is_down_ends_in_a_503_at_the_deadline(engine: StubEngine, routing: Routing) -> None:
    await routing.set_residencies()
    settings = Settings(
        database_url=routing.gateway_url, web_url="http://127.0.0.1:1", gateway_token="lk_gateway", cold_wait_s=0.5
    )
    async with serving(create_app(settings), lifespan="on") as url, acme_client(url) as client:
        await ready(url)
        began = time.monotonic()
        response = await client.post("/v1/chat/completions", json=CHAT)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "version_loading")
    assert "can't be reached" in response.json()["error"]["message"]
    assert 0.4 < time.monotonic() - began < 3


async def test_a_rollback_frees_those_who_wait_for_the_cold_version(
    client: httpx.AsyncClient, engine: StubEngine, routing: Routing
) -> None:
    await routing.set_aliases(("acme", "support", V2, 2))
    await asyncio.sleep(0.2)
    waiting = asyncio.create_task(client.post("/v1/chat/completions", json=CHAT))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    await routing.set_aliases(("acme", "support", V1, 3))
    response = await asyncio.wait_for(waiting, 1)
    assert response.headers["x-lorekeeper-version"] == "acme/support-tone@v1"


async def test_a_client_that_leaves_during_the_wait_is_forgotten(cold: httpx.AsyncClient) -> None:
    with pytest.raises(httpx.ReadTimeout):
        await cold.post("/v1/chat/completions", json=CHAT, timeout=0.2)
    await asyncio.sleep(0.1)
    assert (await cold.get("/readyz")).json()["waiting"] == 0


async def test_a_restarted_engine_heals_within_the_wait(
    gateway_settings: Settings, plane: Plane, routing: Routing
) -> None:
    with FakeEngineServer() as engine:
        load(engine)
        await routing.set_nodes(node_row("n1", url=engine.url))

        async def load_again() -> None:
            load(engine)

        plane.on_demand = load_again
        async with serving(create_app(gateway_settings), lifespan="on") as url, acme_client(url) as client:
            await ready(url)
            assert (await client.post("/v1/chat/completions", json=CHAT)).status_code == 200
            assert plane.demands == []
            engine.state.restart()
            began = time.monotonic()
            response = await client.post("/v1/chat/completions", json=CHAT)
            print(f"\na restarted engine answered again after {time.monotonic() - began:.2f} s")
            assert response.status_code == 200
            assert response.json()["model"] == ENGINE_NAME
            assert len(plane.demands) == 1


async def test_an_engine_that_is_gone_heals_when_it_comes_back(
    client: httpx.AsyncClient, engine: StubEngine, plane: Plane, routing: Routing
) -> None:
    await routing.set_nodes(node_row("n1", url="http://127.0.0.1:1"))
    await asyncio.sleep(0.2)

    async def come_back() -> None:
        await routing.set_nodes(node_row("n1", url=engine.url))

    plane.on_demand = come_back
    response = await client.post("/v1/chat/completions", json=CHAT)
    assert response.status_code == 200
    assert len(plane.demands) == 1


async def test_another_node_answers_at_once_when_one_is_gone(
    client: httpx.AsyncClient, engine: StubEngine, plane: Plane, routing: Routing
) -> None:
    version = acme_world().versions[0]
    await routing.set_nodes(node_row("n0", url="http://127.0.0.1:1"), node_row("n1", url=engine.url))
    await routing.set_residencies(residency_row("n0", version), residency_row("n1", version))
    await asyncio.sleep(0.2)
    for _ in range(5):
        response = await client.post("/v1/chat/completions", json=CHAT)
        assert (response.status_code, response.headers["x-lorekeeper-node"]) == (200, "n1")
    assert plane.demands == []
