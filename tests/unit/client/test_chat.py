import json

import httpx
import pytest

from client.chat import ChatRequest, GatewayClient
from client.errors import ApiError, NotFound, ServerUnreachable, UnexpectedAnswer

REQUEST = ChatRequest("support", ({"role": "user", "content": "Hi"},), max_tokens=5)
HEADERS = {"x-lorekeeper-version": "acme/tone@v1", "content-type": "text/event-stream"}


def events(*items: object) -> bytes:
    lines = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def piece(text: str) -> dict[str, object]:
    return {"choices": [{"delta": {"content": text}}]}


def gateway(response: httpx.Response | Exception, seen: list[httpx.Request] | None = None) -> GatewayClient:
    def handler(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        if isinstance(response, Exception):
            raise response
        return response

    return GatewayClient("http://gateway.test/v1", "lk_key", transport=httpx.MockTransport(handler))


def test_pieces_come_as_they_are_streamed_and_the_version_is_told() -> None:
    usage = {"choices": [], "usage": {"completion_tokens": 2}}
    body = b": ping\n\n" + events(
        {"choices": [{"delta": {"role": "assistant"}}]}, piece("Hel\u2028"), piece("lo"), usage, "[DONE]"
    )
    seen: list[httpx.Request] = []
    pieces: list[str] = []
    answer = gateway(httpx.Response(200, content=body, headers=HEADERS), seen).stream(REQUEST, pieces.append)
    assert pieces == ["Hel\u2028", "lo"]
    assert (answer.content, answer.version, answer.usage) == ("Hel\u2028lo", "acme/tone@v1", {"completion_tokens": 2})
    assert answer.ttft_ms is not None
    assert 0 <= answer.ttft_ms <= answer.total_ms
    assert str(seen[0].url) == "http://gateway.test/v1/chat/completions"
    assert seen[0].headers["authorization"] == "Bearer lk_key"
    assert json.loads(seen[0].content) == {
        "model": "support",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "max_tokens": 5,
    }


def test_a_whole_answer_has_no_time_to_first_token() -> None:
    body = {"choices": [{"message": {"content": "Hello"}}], "usage": {"completion_tokens": 1}}
    answer = gateway(httpx.Response(200, json=body, headers={"x-lorekeeper-version": "v"})).ask(REQUEST)
    assert (answer.content, answer.ttft_ms, answer.version) == ("Hello", None, "v")


def test_an_openai_error_becomes_an_api_error() -> None:
    body = {"error": {"message": "No alias named support.", "type": "invalid_request_error", "code": "unknown_alias"}}
    for stream in (False, True):
        target = gateway(httpx.Response(404, json=body))
        with pytest.raises(NotFound, match="No alias named support") as caught:
            target.stream(REQUEST, print) if stream else target.ask(REQUEST)
        assert caught.value.code == "unknown_alias"


def test_an_error_in_the_middle_of_a_stream_is_told() -> None:
    body = events(piece("Hel"), {"error": {"message": "The engine died.", "code": "engine_died"}})
    with pytest.raises(ApiError, match="The engine died"):
        gateway(httpx.Response(200, content=body)).stream(REQUEST, lambda _text: None)


def test_a_stream_that_breaks_off_is_not_taken_for_an_answer() -> None:
    with pytest.raises(UnexpectedAnswer, match="broke off"):
        gateway(httpx.Response(200, content=events(piece("Hel")))).stream(REQUEST, lambda _text: None)


def test_an_unreachable_gateway_is_asked_once() -> None:
    seen: list[httpx.Request] = []
    with pytest.raises(ServerUnreachable):
        gateway(httpx.ConnectError("refused"), seen).ask(REQUEST)
    assert len(seen) == 1


@pytest.mark.parametrize("content", [b"<h1>", b"[]"])
def test_an_answer_that_is_no_completion_is_refused(content: bytes) -> None:
    with pytest.raises(UnexpectedAnswer):
        gateway(httpx.Response(200, content=content)).ask(REQUEST)


@pytest.mark.parametrize("body", [b"[" * 200_000, b"data: " + b"[" * 200_000 + b"\n\n"])
def test_an_answer_nested_without_an_end_is_an_unexpected_one(body: bytes) -> None:
    with pytest.raises(UnexpectedAnswer):
        gateway(httpx.Response(200, content=body)).ask(REQUEST)
    with pytest.raises(UnexpectedAnswer):
        gateway(httpx.Response(200, content=body)).stream(REQUEST, print)


def test_an_answer_that_cannot_be_unpacked_is_an_unexpected_one() -> None:
    def broken() -> GatewayClient:
        headers = {"content-encoding": "gzip"}
        return gateway(httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"no gzip at all")))

    with pytest.raises(UnexpectedAnswer):
        broken().ask(REQUEST)
    with pytest.raises(UnexpectedAnswer):
        broken().stream(REQUEST, print)


def test_an_answer_is_marked_by_the_id_in_its_headers() -> None:
    headers = {"x-lorekeeper-request-id": "req-7"}
    answer = gateway(httpx.Response(200, json={"choices": []}, headers=headers)).ask(REQUEST)
    assert answer.request_id == "req-7"
    seen: list[httpx.Request] = []
    told = gateway(httpx.Response(202, json={"object": "feedback"}), seen).mark("req-7", 0.5)
    assert told == {"object": "feedback"}
    assert str(seen[0].url) == "http://gateway.test/v1/feedback"
    assert json.loads(seen[0].content) == {"request_id": "req-7", "mark": 0.5, "name": "quality"}


def test_a_mark_that_is_refused_or_goes_nowhere_is_an_error() -> None:
    body = {"error": {"message": "No mark.", "code": "invalid_feedback"}}
    with pytest.raises(ApiError, match="No mark"):
        gateway(httpx.Response(400, json=body)).mark("req-7", 0.5)
    with pytest.raises(ServerUnreachable):
        gateway(httpx.ConnectError("refused")).mark("req-7", 0.5)
