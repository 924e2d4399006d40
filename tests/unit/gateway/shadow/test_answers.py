import json

import pytest

from gateway.shadow.answers import Said, said_by


def sse(*documents: object) -> bytes:
    return b"".join(f"data: {json.dumps(document)}\n\n".encode() for document in documents) + b"data: [DONE]\n\n"


def test_a_chat_whole_and_streamed_says_the_same() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 3}
    whole = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "héllo"}}], "usage": usage}
    parts = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("hé", "llo")]
    streamed = sse({"choices": [{"index": 0, "delta": {"role": "assistant"}}]}, *parts, {"choices": [], "usage": usage})
    assert said_by(json.dumps(whole).encode(), is_stream=False) == Said(("héllo",), 3)
    assert said_by(streamed, is_stream=True) == Said(("héllo",), 3)


def test_choices_are_told_apart_and_ordered() -> None:
    parts = [{"choices": [{"index": index, "text": text}]} for index, text in ((1, "b"), (0, "a"), (1, "B"))]
    assert said_by(sse(*parts), is_stream=True) == Said(("a", "bB"), None)


def test_a_tool_call_is_text_too() -> None:
    call = {"function": {"name": "find", "arguments": '{"x":1}'}}
    whole = {"choices": [{"index": 0, "message": {"content": None, "tool_calls": [call]}}]}
    first = {"tool_calls": [{"index": 0, "function": {"name": "find", "arguments": ""}}]}
    second = {"tool_calls": [{"index": 0, "function": {"arguments": '{"x":1}'}}]}
    streamed = sse(*({"choices": [{"index": 0, "delta": delta}]} for delta in (first, second)))
    assert said_by(json.dumps(whole).encode(), is_stream=False) == said_by(streamed, is_stream=True)


def test_a_response_whole_and_streamed_says_the_same() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2}
    output = [{"type": "message", "content": [{"type": "output_text", "text": "hello"}]}]
    whole = {"output": output, "usage": usage}
    events = [
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.output_text.delta", "delta": "hel"},
        {"type": "response.output_text.delta", "delta": "lo"},
        {"type": "response.completed", "response": whole},
    ]
    assert said_by(json.dumps(whole).encode(), is_stream=False) == Said(("hello",), 2)
    assert said_by(sse(*events), is_stream=True) == Said(("hello",), 2)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"data: x\n\n"])
@pytest.mark.parametrize("is_stream", [False, True])
def test_what_cannot_be_read_says_nothing(body: bytes, is_stream: bool) -> None:
    assert said_by(body, is_stream=is_stream) is None


@pytest.mark.parametrize("count", [2**31, -1, True, 1.5, "3"])
def test_a_count_that_the_database_would_refuse_is_unknown(count: object) -> None:
    document = {"choices": [{"text": "a"}], "usage": {"completion_tokens": count}}
    assert said_by(json.dumps(document).encode(), is_stream=False) == Said(("a",), None)
    assert said_by(sse(document), is_stream=True) == Said(("a",), None)


def test_an_engines_not_a_number_does_not_make_an_answer_unreadable() -> None:
    document = {"choices": [{"text": "a", "logprobs": {"token_logprobs": [float("nan")]}}]}
    assert said_by(json.dumps(document).encode(), is_stream=False) == Said(("a",))
    assert said_by(sse(document), is_stream=True) == Said(("a",))


@pytest.mark.parametrize(
    "document", [{"choices": 1}, {"choices": [1, {"delta": 2, "index": "x"}]}, {"usage": [], "output": [None]}]
)
def test_odd_shapes_are_no_failure(document: object) -> None:
    said = said_by(json.dumps(document).encode(), is_stream=False)
    assert said is not None
    assert not "".join(said.texts)
