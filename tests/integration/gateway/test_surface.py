"""What applications send, by the packages and tools that they use, and what reaches the engine of it."""

import asyncio
import json
from typing import Any

import httpx
import openai
import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

from gateway.wire.asgi import Send
from tests.integration.gateway.stubs import Routing, StubEngine, part, start, until, whole
from tests.unit.gateway.worlds import ACME_KEY, V1, V2, acme_world, residency_row

NAME, NAME_2 = "lk-support-tone-v1-acme", "lk-support-tone-v2-acme"
TOOL = {
    "type": "function",
    "function": {
        "name": "find_order",
        "description": "Finds an order.",
        "parameters": {"type": "object", "properties": {"adapter_id": {"type": "string"}}, "required": []},
    },
}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def ai(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=ACME_KEY, max_retries=0)


def chat(content: str | None, **message: object) -> dict[str, object]:
    inner = {"role": "assistant", "content": content, **message}
    choice = {"index": 0, "message": inner, "finish_reason": "stop", "logprobs": None}
    return {"id": "c-1", "object": "chat.completion", "created": 1, "model": NAME, "choices": [choice], "usage": USAGE}


def answering(document: object) -> Any:
    async def answer(_: dict[str, Any], send: Send) -> None:
        await whole(send, document)

    return answer


async def test_tool_calls_logprobs_json_mode_and_images_pass_both_ways(gateway_url: str, engine: StubEngine) -> None:
    call = {"id": "call-1", "type": "function", "function": {"name": "find_order", "arguments": '{"adapter_id":"7"}'}}
    engine.answer = answering(chat(None, tool_calls=[call]))
    content = [{"type": "text", "text": "whose is it"}, IMAGE]
    async with ai(gateway_url) as client:
        answer = await client.chat.completions.create(  # type: ignore[call-overload]  # a body as applications build it
            model="support",
            messages=[{"role": "user", "content": content}],
            tools=[TOOL],
            tool_choice="auto",
            logprobs=True,
            top_logprobs=3,
            response_format={"type": "json_object"},
            extra_body={"guided_choice": ["a", "b"]},
        )
    assert answer.choices[0].message.tool_calls[0].function.arguments == '{"adapter_id":"7"}'
    (body,) = engine.bodies
    assert (body["tools"], body["top_logprobs"], body["response_format"]) == ([TOOL], 3, {"type": "json_object"})
    assert (body["messages"][0]["content"], body["guided_choice"], body["model"]) == (content, ["a", "b"], NAME)


async def test_embeddings_are_answered_and_counted(gateway_url: str, engine: StubEngine, routing: Routing) -> None:
    vector = {"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    engine.answer = answering({"object": "list", "model": NAME, "data": [vector], "usage": usage})
    async with ai(gateway_url) as client:
        answer = await client.embeddings.create(model="support", input="x", encoding_format="float")
    assert answer.data[0].embedding == [0.5, 0.25]
    (record,) = await routing.records_until(1)
    assert (record["path"], record["prompt_tokens"]) == ("embeddings", 4)


def response(status: str, text: str) -> dict[str, object]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"id": "m-1", "type": "message", "role": "assistant", "status": status, "content": content}
    return {
        "id": "resp-1",
        "object": "response",
        "created_at": 1,
        "model": NAME,
        "status": status,
        "tools": [],
        "output": [message] if text else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "usage": {
            "input_tokens": 3,
            "output_tokens": 2,
            "total_tokens": 5,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


async def test_a_response_is_answered_whole_and_never_kept(
    gateway_url: str, engine: StubEngine, routing: Routing
) -> None:
    engine.answer = answering(response("completed", "hello"))
    async with ai(gateway_url) as client:
        answer = await client.responses.create(model="support", input="hi", store=True)
        with pytest.raises(openai.BadRequestError, match="whole conversation"):
            await client.responses.create(model="support", input="hi", previous_response_id="resp-1")
    assert answer.output_text == "hello"
    assert [body["store"] for body in engine.bodies] == [False]
    first, second = await routing.records_until(2)
    assert (first["path"], first["prompt_tokens"], first["completion_tokens"]) == ("responses", 3, 2)
    assert (second["status"], second["error_kind"]) == (400, "field_not_allowed")


async def test_a_response_streams(gateway_url: str, engine: StubEngine, routing: Routing) -> None:
    events = [
        {"type": "response.created", "sequence_number": 0, "response": response("in_progress", "")},
        {
            "type": "response.output_text.delta",
            "sequence_number": 1,
            "item_id": "m-1",
            "output_index": 0,
            "content_index": 0,
            "delta": "hello",
            "logprobs": [],
        },
        {"type": "response.completed", "sequence_number": 2, "response": response("completed", "hello")},
    ]

    async def answer(_: dict[str, Any], send: Send) -> None:
        await start(send, media="text/event-stream")
        for event in events:
            await part(send, f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await part(send, b"", more=False)

    engine.answer = answer
    async with ai(gateway_url) as client:
        stream = await client.responses.create(model="support", input="hi", stream=True)
        seen = [event.type async for event in stream]
    assert seen == [event["type"] for event in events]
    (record,) = await routing.records_until(1)
    assert (record["stream"], record["completion_tokens"]) == (True, 2)


async def test_langchains_chat_answers_streams_and_calls_tools(gateway_url: str, engine: StubEngine) -> None:
    model = ChatOpenAI(model="support", base_url=f"{gateway_url}/v1", api_key=ACME_KEY, max_retries=0)  # type: ignore[arg-type]  # as its documentation shows it
    engine.answer = answering(chat("hello"))
    answer = await model.ainvoke([HumanMessage("hi")])
    assert (answer.content, answer.usage_metadata and answer.usage_metadata["output_tokens"]) == ("hello", 2)
    await model.bind_tools([TOOL]).ainvoke("hi")
    assert engine.bodies[-1]["tools"][0]["function"]["name"] == "find_order"

    async def stream(_: dict[str, Any], send: Send) -> None:
        await start(send, media="text/event-stream")
        for text in ("hel", "lo"):
            choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
            event = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": NAME, "choices": [choice]}
            await part(send, f"data: {json.dumps(event)}\n\n".encode())
        await part(send, b"data: [DONE]\n\n", more=False)

    engine.answer = stream
    assert "".join([str(chunk.content) async for chunk in model.astream("hi")]) == "hello"


async def curl(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", "-i", "--noproxy", "*", "--max-time", "10", *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


async def test_curl_sees_what_happened_in_the_headers(gateway_url: str, engine: StubEngine) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    output = await curl(
        *(f"{gateway_url}/v1/chat/completions", "-H", f"Authorization: Bearer {ACME_KEY}"),
        *("-H", "Content-Type: application/json", "-H", f"traceparent: {trace}", "-H", "tracestate: a=1"),
        *("-d", '{"model": "acme/support", "messages": []}'),
    )
    assert output.startswith("HTTP/1.1 200 ")
    for line in (
        "x-lorekeeper-version: acme/support-tone@v1",
        "x-lorekeeper-tier: gpu",
        "x-lorekeeper-node: n1",
        "x-lorekeeper-request-id: req-",
    ):
        assert f"\r\n{line}" in output
    assert "x-lorekeeper-fallback" not in output
    assert (engine.headers[0]["traceparent"], engine.headers[0]["tracestate"]) == (trace, "a=1")


async def test_curl_is_told_how_to_do_it_right(gateway_url: str) -> None:
    wrong_type = await curl(f"{gateway_url}/v1/completions", "-H", f"Authorization: Bearer {ACME_KEY}", "-d", "{}")
    assert wrong_type.startswith("HTTP/1.1 415 ")
    assert '"code":"unsupported_media_type"' in wrong_type
    no_key = await curl(f"{gateway_url}/v1/models")
    assert no_key.startswith("HTTP/1.1 401 ")
    assert "www-authenticate: Bearer" in no_key


async def test_a_model_of_a_wrong_type_is_named(client: httpx.AsyncClient, engine: StubEngine) -> None:
    for model in (7, None, ["support"], {"name": "support"}, ""):
        answer = await client.post("/v1/embeddings", json={"model": model, "input": "x"})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (400, "missing_model", "model")
    assert engine.bodies == []


async def test_no_field_of_a_client_names_an_adapter_to_an_engine(
    client: httpx.AsyncClient, engine: StubEngine
) -> None:
    for field in ("lora_request", "lora_path", "adapter_id", "kv_transfer_params"):
        answer = await client.post("/v1/completions", json={"model": "support", "prompt": "x", field: NAME_2})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)
    twice = b'{"model": "lk-support-tone-v2-acme", "prompt": "x", "model": "support"}'
    await client.post("/v1/completions", content=twice, headers={"content-type": "application/json"})
    assert [body["model"] for body in engine.bodies] == [NAME]


async def test_an_alias_that_is_mirrored_leaves_a_comparison(
    client: httpx.AsyncClient, engine: StubEngine, routing: Routing
) -> None:
    async def answer(body: dict[str, Any], send: Send) -> None:
        await whole(
            send, {"model": body["model"], "choices": [{"index": 0, "text": "ab" if body["model"] == NAME else "aX"}]}
        )

    engine.answer = answer
    v1, v2 = acme_world().versions[:2]
    await routing.set_residencies(residency_row("n1", v1), residency_row("n1", v2))
    await routing.set_aliases(("acme", "support", V1, 2, V2, 0, "salt", [], [], V2, 10_000))

    async def is_mirrored() -> bool:
        told = await client.post("/v1/completions", json={"model": "support", "prompt": "x"})
        assert told.json()["model"] == NAME
        return any(record["is_shadow"] for record in await routing.records())

    await until(is_mirrored, seconds=10)
    records = await routing.records()
    shadow = next(record for record in records if record["is_shadow"])
    (own,) = [record for record in records if record["request_id"] == shadow["request_id"] and not record["is_shadow"]]
    assert (own["side"], own["version_id"], shadow["version_id"]) == ("stable", V1, V2)

    async def compared() -> list[tuple[float, str]]:
        cursor = await routing.connection.execute("SELECT agreement, error_kind FROM gateway_shadow")
        return [(row[0], row[1]) for row in await cursor.fetchall()]

    async def is_compared() -> bool:
        return bool(await compared())

    await until(is_compared)
    assert set(await compared()) == {(0.5, "")}
