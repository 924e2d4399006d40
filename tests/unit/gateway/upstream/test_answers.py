import json

import pytest

from gateway.errors import EngineUnreadable, VersionMismatch
from gateway.upstream.answers import (
    Seen,
    Usage,
    check_json_answer,
    first_event_is_right,
    usage_at_end,
)

MINE = "lk-mine"


def event(document: object, end: str = "\n\n") -> bytes:
    return f"data: {json.dumps(document)}{end}".encode()


def test_a_json_answer_gives_its_usage() -> None:
    body = json.dumps({"model": MINE, "usage": {"prompt_tokens": 3, "completion_tokens": 5}}).encode()
    assert check_json_answer(body, MINE) == Usage(3, 5)


@pytest.mark.parametrize("usage", [None, {}, [], *({"prompt_tokens": count} for count in ("3", True, -1, 2**31))])
def test_a_usage_that_says_nothing_is_unknown(usage: object) -> None:
    assert check_json_answer(json.dumps({"model": MINE, "usage": usage}).encode(), MINE) == Usage()


@pytest.mark.parametrize("document", [{"model": "base"}, {"model": None}, {}, [], "text"])
def test_a_json_answer_of_another_model_is_a_mismatch(document: object) -> None:
    with pytest.raises(VersionMismatch):
        check_json_answer(json.dumps(document).encode(), MINE)


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff"])
def test_an_answer_that_is_no_json_is_unreadable(body: bytes) -> None:
    with pytest.raises(EngineUnreadable):
        check_json_answer(body, MINE)


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
def test_a_stream_is_right_once_its_first_event_names_the_version(end: str) -> None:
    whole = event({"model": MINE}, end)
    assert first_event_is_right(whole, MINE)
    assert first_event_is_right(b": ping" + end.encode() + whole, MINE)
    assert not any(first_event_is_right(whole[:size], MINE) for size in range(len(whole)))


def test_an_event_over_several_lines_is_put_together() -> None:
    assert first_event_is_right(b'event: x\ndata: {"model":\ndata: "lk-mine"}\n\n', MINE)


def test_a_stream_of_another_model_is_a_mismatch() -> None:
    with pytest.raises(VersionMismatch):
        first_event_is_right(event({"model": "base"}) + event({"model": MINE}), MINE)


def test_a_stream_that_begins_with_an_error_is_let_through() -> None:
    assert first_event_is_right(event({"error": {"message": "no"}}), MINE)


def test_a_stream_that_ends_at_once_is_let_through() -> None:
    assert first_event_is_right(b"data: [DONE]\n\n", MINE)


def test_a_stream_that_is_no_json_is_unreadable() -> None:
    with pytest.raises(EngineUnreadable):
        first_event_is_right(b"data: hello\n\n", MINE)


def usage_of(*chunks: bytes) -> Usage:
    return usage_at_end(b"".join(chunks))


LAST = event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 9}})
DONE = b"data: [DONE]\n\n"


def test_the_usage_stands_in_the_last_events() -> None:
    assert usage_of(event({"usage": None}), LAST, DONE) == Usage(7, 9)


def test_a_long_stream_keeps_only_its_end() -> None:
    seen, events = Seen(), [event({"text": "x" * 900}) for _ in range(1000)] + [LAST, DONE]
    for passed in events:
        seen.add(passed)
    assert len(seen.end()) < 200_000
    assert seen.events() == len(events)
    assert usage_at_end(seen.end()) == Usage(7, 9)


def test_events_are_counted_however_they_are_cut() -> None:
    seen, stream = Seen(), event({"text": "x" * 50}) * 5000
    for at in range(0, len(stream), 7):
        seen.add(stream[at : at + 7])
    assert abs(seen.events() - 5000) <= len(stream) // 65536


def test_a_stream_without_usage_says_nothing() -> None:
    assert usage_of(event({"choices": []}), DONE) == Usage()
    assert usage_of() == Usage()


def test_usage_in_the_text_of_an_answer_is_not_believed() -> None:
    assert usage_of(event({"text": json.dumps({"usage": {"prompt_tokens": 1}})}), DONE) == Usage()


def test_an_answer_of_the_responses_api_names_its_model_and_counts_its_tokens_in_its_own_words() -> None:
    usage = {"input_tokens": 4, "output_tokens": 6, "total_tokens": 10}
    assert check_json_answer(json.dumps({"model": MINE, "usage": usage}).encode(), MINE) == Usage(4, 6)
    created = event({"type": "response.created", "response": {"model": MINE, "usage": None}})
    assert first_event_is_right(b"event: response.created\n" + created, MINE)
    assert usage_of(created, event({"type": "response.completed", "response": {"usage": usage}})) == Usage(4, 6)


@pytest.mark.parametrize(
    "said", [{"response": {"model": "base"}}, {"response": {}}, {"model": "base", "response": {"model": MINE}}]
)
def test_an_event_of_another_model_is_a_mismatch_wherever_it_says_so(said: object) -> None:
    with pytest.raises(VersionMismatch):
        first_event_is_right(event(said), MINE)


def test_embeddings_have_no_completion() -> None:
    body = json.dumps({"model": MINE, "data": [], "usage": {"prompt_tokens": 7, "total_tokens": 7}}).encode()
    assert check_json_answer(body, MINE) == Usage(7, None)


def test_an_answer_that_says_nan_is_read_all_the_same() -> None:
    assert check_json_answer(b'{"model": "lk-mine", "logprobs": NaN}', MINE) == Usage()


def test_a_stream_whose_engine_never_tells_its_model_is_only_waited_for() -> None:
    assert first_event_is_right(event({"model": "base"}), None)
    assert not first_event_is_right(b": ping\n\n", None)
