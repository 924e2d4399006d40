"""The package that applications use, unchanged, through the gateway to a faithful engine."""

from collections.abc import AsyncIterator

import openai
import pytest

from gateway.app import create_app
from gateway.settings import Settings
from tests.fakes.engine_vllm import FakeEngineServer
from tests.integration.gateway.conftest import ready
from tests.integration.gateway.stubs import Routing, serving
from tests.integration.gateway.test_cold import ENGINE_NAME, load
from tests.unit.gateway.worlds import ACME_KEY, node_row


@pytest.fixture
async def ai(gateway_settings: Settings, routing: Routing) -> AsyncIterator[openai.AsyncOpenAI]:
    with FakeEngineServer() as engine:
        load(engine)
        await routing.set_nodes(node_row("n1", url=engine.url))
        async with serving(create_app(gateway_settings), lifespan="on") as url:
            await ready(url)
            async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=ACME_KEY, max_retries=0) as client:
                yield client


async def test_a_chat_streams_in_the_versions_voice(ai: openai.AsyncOpenAI, routing: Routing) -> None:
    text, usage = "", None
    stream = await ai.chat.completions.create(
        model="support",
        messages=[{"role": "user", "content": "where is it"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    async for chunk in stream:
        usage = chunk.usage or usage
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
    assert text == f"[{ENGINE_NAME}] answers: where is it "
    assert usage is not None
    (record,) = await routing.records_until(1)
    assert record["stream"]
    assert (record["prompt_tokens"], record["completion_tokens"]) == (usage.prompt_tokens, usage.completion_tokens)


async def test_a_chat_is_answered_whole(ai: openai.AsyncOpenAI) -> None:
    answer = await ai.chat.completions.create(model="acme/support", messages=[{"role": "user", "content": "hello"}])
    assert answer.choices[0].message.content == f"[{ENGINE_NAME}] answers: hello "


async def test_a_completion_is_answered_whole_and_streamed(ai: openai.AsyncOpenAI) -> None:
    whole = await ai.completions.create(model="support", prompt="one two")
    streamed = [
        part.choices[0].text
        async for part in await ai.completions.create(model="support", prompt="one two", stream=True)
    ]
    assert whole.choices[0].text == "".join(streamed)


async def test_models_can_be_listed_and_fetched(ai: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in ai.models.list()] == ["support"]
    assert (await ai.models.retrieve("support")).owned_by == "acme"


async def test_errors_arrive_as_the_packages_own(ai: openai.AsyncOpenAI) -> None:
    messages: list[openai.types.chat.ChatCompletionUserMessageParam] = [{"role": "user", "content": "x"}]
    with pytest.raises(openai.NotFoundError) as not_found:
        await ai.chat.completions.create(model="other/secret", messages=messages)
    assert not_found.value.code == "model_not_found"
    with pytest.raises(openai.AuthenticationError) as refused:
        await ai.with_options(api_key="sk-wrong").chat.completions.create(model="support", messages=messages)
    assert refused.value.code == "invalid_api_key"
