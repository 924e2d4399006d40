"""Marks of applications, from `POST /v1/feedback` to the database."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from gateway.app import create_app
from gateway.records import MarkRecord
from gateway.settings import Settings
from tests.integration.gateway.conftest import acme_client, ready
from tests.integration.gateway.stubs import Routing, StubEngine, serving, until
from tests.unit.gateway.worlds import ACME_KEY, EXPIRED_KEY, OTHER_KEY

CHAT = {"model": "support", "messages": [{"role": "user", "content": "a private question"}]}
ID = "req-0123456789abcdef01230000002a"


async def marks(routing: Routing) -> list[dict[str, Any]]:
    cursor = await routing.connection.execute("SELECT * FROM gateway_feedback ORDER BY at")
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]


async def marks_until(routing: Routing, count: int) -> list[dict[str, Any]]:
    async def are_there() -> bool:
        return len(await marks(routing)) >= count

    await until(are_there)
    return await marks(routing)


async def test_an_answer_is_marked_by_the_id_that_came_with_it(client: httpx.AsyncClient, routing: Routing) -> None:
    answer = await client.post("/v1/chat/completions", json=CHAT)
    request_id = answer.headers["x-lorekeeper-request-id"]
    said = await client.post("/v1/feedback", json={"request_id": request_id, "mark": "up"})
    assert said.status_code == 202
    assert said.json() == {"object": "feedback", "request_id": request_id, "name": "quality", "mark": 1.0}
    (mark,) = await marks_until(routing, 1)
    (record,) = await routing.records_until(1)
    assert (mark["tenant"], mark["request_id"]) == (record["tenant"], record["request_id"])
    assert (mark["name"], mark["mark"]) == ("quality", 1.0)
    assert mark["at"] > record["at"]


async def test_a_mark_leaves_no_record_of_a_request(client: httpx.AsyncClient, routing: Routing) -> None:
    await client.post("/v1/feedback", json={"request_id": ID, "mark": 1})
    await client.post("/v1/chat/completions", json=CHAT)
    await marks_until(routing, 1)
    (record,) = await routing.records_until(1)
    assert record["path"] == "chat"


async def test_a_mark_is_the_callers_tenants_whoevers_the_request_was(
    gateway_url: str, engine: StubEngine, routing: Routing
) -> None:
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {OTHER_KEY}"}, trust_env=False) as other:
        assert (await other.post(f"{gateway_url}/v1/feedback", json={"request_id": ID, "mark": 0})).status_code == 202
    (mark,) = await marks_until(routing, 1)
    assert mark["tenant"] == "other"
    assert engine.bodies == []


@pytest.mark.parametrize("key", [None, "lk_0123456789ab_" + "z" * 43, EXPIRED_KEY])
async def test_without_a_key_there_is_no_mark(gateway_url: str, routing: Routing, key: str | None) -> None:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False) as client:
        answer = await client.post(f"{gateway_url}/v1/feedback", json={"request_id": ID, "mark": 1})
    assert answer.status_code == 401
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert await marks(routing) == []


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"{", {}, 400, "invalid_json"),
        (b"[]", {}, 400, "invalid_json"),
        (b"{}", {}, 400, "invalid_feedback"),
        (b'{"request_id": "%b", "mark": true}' % ID.encode(), {}, 400, "invalid_feedback"),
        (b'{"request_id": "%b", "mark": 1, "model": "support"}' % ID.encode(), {}, 400, "invalid_feedback"),
        (b'{"request_id": "%b", "mark": NaN}' % ID.encode(), {}, 400, "invalid_json"),
        (b"{}", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
        (b" " * 4097, {}, 413, "body_too_large"),
    ],
)
async def test_what_is_no_mark_has_its_clear_error(
    client: httpx.AsyncClient, routing: Routing, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    answer = await client.post("/v1/feedback", content=content, headers={"content-type": "application/json", **headers})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert (await client.post("/v1/feedback", json={"request_id": ID, "mark": 1})).status_code == 202
    assert len(await marks_until(routing, 1)) == 1


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_a_mark_is_posted(client: httpx.AsyncClient, method: str) -> None:
    assert (await client.request(method, "/v1/feedback")).status_code == 405


async def test_other_paths_are_still_asked_for_by_head(client: httpx.AsyncClient) -> None:
    assert (await client.head("/v1/models")).status_code == 200


async def test_a_tenant_that_marks_too_much_is_told_when_to_go_on_and_others_are_not(
    gateway_settings: Settings, engine: StubEngine
) -> None:
    settings = replace(gateway_settings, feedback_per_minute=2)
    body = {"request_id": ID, "mark": 1}
    async with serving(create_app(settings), lifespan="on") as url:
        await ready(url)
        async with acme_client(url) as client:
            answers = [await client.post("/v1/feedback", json=body) for _ in range(3)]
            assert [answer.status_code for answer in answers] == [202, 202, 429]
            assert answers[2].json()["error"]["code"] == "feedback_limit_exceeded"
            assert int(answers[2].headers["retry-after"]) == 30
            assert (await client.post("/v1/completions", json=CHAT)).status_code == 200
        async with httpx.AsyncClient(headers={"authorization": f"Bearer {OTHER_KEY}"}, trust_env=False) as other:
            assert (await other.post(f"{url}/v1/feedback", json=body)).status_code == 202


async def test_marks_of_a_time_without_a_database_arrive_once_and_as_they_were(
    gateway_settings: Settings, engine: StubEngine, routing: Routing, tmp_path: Path
) -> None:
    settings = replace(gateway_settings, state_folder=tmp_path)
    async with serving(create_app(settings), lifespan="on") as url:
        await ready(url)
        async with acme_client(url) as client:
            await routing.go_away()
            try:
                for mark in (0.25, "down"):
                    body = {"request_id": ID, "mark": mark, "name": "tone"}
                    assert (await client.post("/v1/feedback", json=body)).status_code == 202

                async def is_on_disk() -> bool:
                    spooled = sum(path.stat().st_size for path in (tmp_path / "spool").glob("*.records"))
                    pending = (await client.get("/readyz")).json()["records_pending"]
                    return spooled > 100 and pending == 0

                await until(is_on_disk)
            finally:
                await routing.come_back()
            first, last = await marks_until(routing, 2)
            await asyncio.sleep(0.3)
    assert [MarkRecord(**row) for row in await marks(routing)] == [MarkRecord(**first), MarkRecord(**last)]
    assert (first["mark"], last["mark"], last["name"]) == (0.25, 0.0, "tone")


async def test_a_mark_can_be_sent_with_the_package_that_applications_have(gateway_url: str, routing: Routing) -> None:
    async with openai.AsyncOpenAI(base_url=f"{gateway_url}/v1", api_key=ACME_KEY, max_retries=0) as ai:
        answer = await ai.chat.completions.with_raw_response.create(model="support", messages=[])
        request_id = answer.headers["x-lorekeeper-request-id"]
        await ai.post("/feedback", cast_to=object, body={"request_id": request_id, "mark": 0.8})
        with pytest.raises(openai.BadRequestError) as refused:
            await ai.post("/feedback", cast_to=object, body={"request_id": request_id, "mark": 8})
    assert (refused.value.code, refused.value.param) == ("invalid_feedback", "mark")
    (mark,) = await marks_until(routing, 1)
    assert (mark["request_id"], mark["mark"]) == (request_id, 0.8)
