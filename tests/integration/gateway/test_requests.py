import asyncio
import json
import logging
from typing import Any

import httpx
import pytest

from gateway.wire.asgi import Send
from tests.integration.gateway.stubs import Plane, Routing, StubEngine, part, start, whole
from tests.unit.gateway.worlds import ACME_KEY, EXPIRED_KEY, OTHER_KEY, V1, acme_world, version_row

ENGINE_NAME = "lk-support-tone-v1-acme"
CHAT = {"model": "support", "messages": [{"role": "user", "content": "a private question"}]}


async def test_a_completion_is_answered_by_the_version_behind_the_alias(
    client: httpx.AsyncClient, engine: StubEngine
) -> None:
    response = await client.post("/v1/chat/completions", json={**CHAT, "unknown_field": {"kept": True}})
    assert response.status_code == 200
    assert response.headers["x-lorekeeper-version"] == "acme/support-tone@v1"
    assert response.headers["x-lorekeeper-node"] == "n1"
    assert response.headers["x-lorekeeper-tier"] == "gpu"
    assert response.headers["x-lorekeeper-request-id"] == engine.headers[0]["x-request-id"]
    assert engine.bodies[0] == {**CHAT, "unknown_field": {"kept": True}, "model": ENGINE_NAME}
    assert "authorization" not in engine.headers[0]
    assert engine.headers[0]["accept-encoding"] == "identity"


STREAM = [
    b": a comment\n\n",
    b'data: {"model": "lk-support-tone-v1-acme", "x": "\\u00e9"}\n\n',
    b'data: {"model":"lk-support-tone-v1-acme",   "text": "\xc3\xa9\xf0\x9f\x99\x82"',
    b"}\n",
    b"\nevent: odd\r\ndata: not json at all\r\n\r\n",
    b"data: " + b"x" * 300_000 + b"\n\n",
    b'data: {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 6}}\n\ndata: [DONE]\n\n',
    b"trailing bytes without an end",
]


async def test_a_stream_passes_byte_for_byte_and_without_waiting_for_its_end(
    client: httpx.AsyncClient, engine: StubEngine
) -> None:
    go_on = asyncio.Event()

    async def answer(_: dict[str, Any], send: Send) -> None:
        await start(send, media="text/event-stream; charset=utf-8")
        for chunk in STREAM[:2]:
            await part(send, chunk)
        await go_on.wait()
        for chunk in STREAM[2:]:
            await part(send, chunk)
            await asyncio.sleep(0.002)
        await part(send, b"", more=False)

    engine.answer = answer
    received = b""
    async with client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        async for chunk in response.aiter_raw():
            received += chunk
            if received == b"".join(STREAM[:2]):
                go_on.set()
    assert received == b"".join(STREAM)


async def test_a_request_leaves_a_record_without_its_body(
    client: httpx.AsyncClient, engine: StubEngine, routing: Routing
) -> None:
    await client.post("/v1/chat/completions", json=CHAT)
    await client.post("/v1/chat/completions", json={**CHAT, "stream": True})
    await client.post("/v1/chat/completions", json={**CHAT, "model": "unknown"})
    first, second, third = await routing.records_until(3)
    assert (first["tenant"], first["alias"], first["version_id"], first["node"]) == ("acme", "support", V1, "n1")
    assert (first["status"], first["error_kind"], first["tier"], first["stream"]) == (200, "", "gpu", False)
    assert (first["prompt_tokens"], first["completion_tokens"]) == (2, 3)
    assert (second["stream"], second["prompt_tokens"], second["completion_tokens"]) == (True, 2, 3)
    assert (third["status"], third["error_kind"], third["alias"]) == (404, "model_not_found", "")
    assert "private question" not in repr([first, second, third])


@pytest.mark.parametrize("key", [None, "sk-1", "lk_0123456789ab_" + "z" * 43, EXPIRED_KEY])
async def test_a_bad_key_is_refused_in_openais_form(
    gateway_url: str, engine: StubEngine, routing: Routing, key: str | None
) -> None:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False) as client:
        for response in (
            await client.post(f"{gateway_url}/v1/completions", json=CHAT),
            await client.get(f"{gateway_url}/v1/models"),
            await client.get(f"{gateway_url}/v1/models/support"),
        ):
            assert response.status_code == 401
            assert set(response.json()["error"]) == {"message", "type", "param", "code"}
            assert response.json()["error"]["code"] in ("invalid_api_key", "expired_api_key")
    assert engine.bodies == []


async def test_models_that_the_tenant_does_not_have_look_all_alike(
    client: httpx.AsyncClient, engine: StubEngine
) -> None:
    said = set()
    for model in ("unknown", "secret", "other/secret", "/etc/passwd", "../x", ENGINE_NAME, "base", "SUPPORT"):
        response = await client.post("/v1/completions", json={"model": model, "prompt": "x"})
        said.add((response.status_code, response.text))
    assert len(said) == 1
    assert next(iter(said))[0] == 404
    assert engine.bodies == []


async def test_models_lists_the_tenants_aliases(client: httpx.AsyncClient, gateway_url: str) -> None:
    document = (await client.get("/v1/models")).json()
    assert [model["id"] for model in document["data"]] == ["support"]
    assert (await client.get("/v1/models/support")).json()["owned_by"] == "acme"
    assert (await client.get("/v1/models/acme%2Fsupport")).json()["id"] == "support"
    assert (await client.get("/v1/models/secret")).status_code == 404
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {OTHER_KEY}"}, trust_env=False) as other:
        document = (await other.get(f"{gateway_url}/v1/models")).json()
    assert [model["id"] for model in document["data"]] == ["secret"]


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"{", {}, 400, "invalid_json"),
        (b"{} trailing", {}, 400, "invalid_json"),
        (b"[]", {}, 400, "invalid_json"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, {}, 400, "invalid_json"),
        (b"{}", {}, 400, "missing_model"),
        (b"{}", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
        (b"x" * (8 * 1024 * 1024 + 1), {}, 413, "body_too_large"),
    ],
)
async def test_a_bad_body_has_its_clear_error(
    client: httpx.AsyncClient, engine: StubEngine, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    response = await client.post(
        "/v1/completions", content=content, headers={"content-type": "application/json", **headers}
    )
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert engine.bodies == []
    assert (await client.post("/v1/completions", json=CHAT)).status_code == 200


async def test_a_large_body_under_the_limit_goes_through(client: httpx.AsyncClient, engine: StubEngine) -> None:
    body = {**CHAT, "filler": "x" * (8 * 1024 * 1024 - 1000)}
    assert (await client.post("/v1/completions", json=body)).status_code == 200
    assert len(engine.bodies[0]["filler"]) == len(body["filler"])


async def test_unknown_paths_and_methods_have_their_errors(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/nothing")).json()["error"]["code"] == "not_found"
    assert (await client.get("/v1/completions")).json()["error"]["code"] == "method_not_allowed"
    assert (await client.post("/v1/models", json={})).status_code == 405
    assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_a_revoked_version_stops_answering(
    client: httpx.AsyncClient, engine: StubEngine, routing: Routing
) -> None:
    await routing.set_versions(version_row(V1, "v1", state="revoked"))
    await asyncio.sleep(0.3)
    response = await client.post("/v1/completions", json=CHAT)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "version_revoked")
    assert engine.bodies == []


async def test_an_error_of_the_engine_is_passed_on(client: httpx.AsyncClient, engine: StubEngine) -> None:
    error = {"message": f"{ENGINE_NAME}: max_tokens is too large", "type": "BadRequest", "param": None, "code": 400}

    async def answer(_: dict[str, Any], send: Send) -> None:
        await whole(send, {"error": error}, status=400)

    engine.answer = answer
    response = await client.post("/v1/completions", json=CHAT)
    told = {**error, "message": "support: max_tokens is too large", "code": "engine_refused"}
    assert (response.status_code, response.json()) == (400, {"error": told})


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_by_another_model_is_thrown_away(
    client: httpx.AsyncClient, engine: StubEngine, stream: bool
) -> None:
    async def answer(_: dict[str, Any], send: Send) -> None:
        if stream:
            await start(send, media="text/event-stream")
            await part(send, b'data: {"model": "base", "text": "wrong voice"}\n\n', more=False)
        else:
            await whole(send, {"model": "base", "text": "wrong voice"})

    engine.answer = answer
    response = await client.post("/v1/completions", json={**CHAT, "stream": stream})
    assert (response.status_code, response.json()["error"]["code"]) == (502, "version_mismatch")
    assert "wrong voice" not in response.text
    assert (await client.get("/readyz")).json()["version_mismatch"] == 1


async def test_a_client_that_leaves_cancels_the_engines_work(
    client: httpx.AsyncClient, engine: StubEngine, routing: Routing
) -> None:
    async def answer(body: dict[str, Any], send: Send) -> None:
        await start(send, media="text/event-stream")
        while True:
            await part(send, f"data: {json.dumps({'model': body['model']})}\n\n".encode())
            await asyncio.sleep(0.01)

    engine.answer = answer
    async with client.stream("POST", "/v1/completions", json={**CHAT, "stream": True}) as response:
        async for _ in response.aiter_raw():
            break
    await asyncio.wait_for(engine.cancelled.wait(), 2)
    (record,) = await routing.records_until(1)
    assert (record["status"], record["error_kind"]) == (499, "client_gone")


async def test_a_client_that_leaves_before_the_first_byte_cancels_the_engines_work(
    client: httpx.AsyncClient, engine: StubEngine
) -> None:
    async def answer(_: dict[str, Any], __: Send) -> None:
        await asyncio.sleep(30)

    engine.answer = answer
    with pytest.raises(httpx.ReadTimeout):
        await client.post("/v1/completions", json=CHAT, timeout=0.2)
    await asyncio.wait_for(engine.cancelled.wait(), 2)


async def test_a_stream_that_breaks_is_seen_as_broken(
    client: httpx.AsyncClient, engine: StubEngine, routing: Routing
) -> None:
    async def answer(body: dict[str, Any], send: Send) -> None:
        await start(send, media="text/event-stream")
        await part(send, f"data: {json.dumps({'model': body['model']})}\n\n".encode())
        await asyncio.sleep(0.05)

    engine.answer = answer
    received = b""
    with pytest.raises(httpx.RemoteProtocolError):
        async with client.stream("POST", "/v1/completions", json={**CHAT, "stream": True}) as response:
            async for chunk in response.aiter_raw():
                received += chunk
    assert b"[DONE]" not in received
    assert len(engine.bodies) == 1
    (record,) = await routing.records_until(1)
    assert (record["status"], record["error_kind"]) == (200, "engine_broken")


async def test_keys_and_bodies_are_never_logged(
    client: httpx.AsyncClient, engine: StubEngine, plane: Plane, routing: Routing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="gateway")
    world = acme_world()
    await client.post("/v1/completions", json=CHAT)

    async def lie(_: dict[str, Any], send: Send) -> None:
        await whole(send, {"model": "base"})

    engine.answer = lie
    await client.post("/v1/completions", json=CHAT)
    await routing.set_residencies()
    await asyncio.sleep(0.2)
    plane.state = "no_node"
    await client.post("/v1/completions", json=CHAT)
    logged = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("gateway"))
    assert "version_mismatch" in logged
    assert not [secret for secret in (ACME_KEY, "lk_gateway", "private question") if secret in logged]
    assert not [row[1] for row in world.tokens if row[1] in logged]
