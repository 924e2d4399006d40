"""An alias of another tenant through a real gateway: who is counted, what is told, and how a grant ends."""

from collections.abc import AsyncIterator

import httpx
import pytest

from gateway.app import create_app
from gateway.settings import Settings
from tests.integration.gateway.conftest import acme_client, ready
from tests.integration.gateway.stubs import Routing, StubEngine, serving, until
from tests.unit.gateway.worlds import FOREIGN, V1, V2, acme_world, node_row, residency_row, shared_row, version_row

CHAT = {"model": "ours", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
async def client(routing: Routing, engine: StubEngine, gateway_settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """Of the tenant acme, which may call `other/secret` as `ours`, two requests a minute."""
    world = acme_world()
    world.aliases.append(shared_row("ours"))
    world.nodes = [node_row("n1", url=engine.url)]
    world.residencies = [residency_row("n1", version) for version in world.versions]
    world.rules = [("acme", 2, None, None, None, [], True)]
    await routing.put(world)
    async with serving(create_app(gateway_settings), lifespan="on") as url:
        await ready(url)
        async with acme_client(url) as made:
            yield made


async def ask(client: httpx.AsyncClient, model: str = "ours") -> httpx.Response:
    return await client.post("/v1/chat/completions", json={**CHAT, "model": model})


async def test_a_shared_alias_answers_counts_its_caller_and_names_no_owner(
    client: httpx.AsyncClient, routing: Routing
) -> None:
    answered = await ask(client)
    assert answered.status_code == 200
    assert answered.headers["x-lorekeeper-version"] == "support-tone@v1"
    assert (await ask(client, "other/secret")).status_code == 404
    listed = (await client.get("/v1/models")).json()["data"]
    assert [(model["id"], model["owned_by"]) for model in listed] == [("ours", "shared"), ("support", "acme")]
    record = next(row for row in await routing.records_until(2) if row["status"] == 200)
    assert (record["tenant"], record["alias"], record["version_id"]) == ("acme", "ours", FOREIGN)
    assert (await ask(client)).status_code == 429


async def test_the_move_the_revocation_and_the_end_of_a_shared_alias_reach_its_callers(
    client: httpx.AsyncClient, routing: Routing
) -> None:
    async def listed(*names: str) -> bool:
        found = (await client.get("/v1/models")).json()["data"]
        return [model["id"] for model in found] == list(names)

    own = [("acme", "support", V1, 1), ("other", "secret", FOREIGN, 1)]
    await routing.set_aliases(*own)
    await until(lambda: listed("support"))
    assert (await ask(client)).status_code == 404
    await routing.set_aliases(*own, shared_row("ours"))
    await until(lambda: listed("ours", "support"))
    versions = [
        version_row(V1, "v1"),
        version_row(V2, "v2"),
        version_row(FOREIGN, "v1", tenant="other", state="revoked"),
    ]
    await routing.set_versions(*versions)
    await until(lambda: listed("support"))
    assert (await ask(client)).status_code == 403
