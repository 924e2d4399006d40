import json

import httpx
import pytest

from workers.node.disk.fetch import Fetcher
from workers.node.errors import WebAwayError, WebFailedError, WebRefusedError
from workers.node.reports import Outcome, WebClient


def test_an_outcome_leaves_out_what_is_empty() -> None:
    assert Outcome("lk-a", 1, "on_disk").to_json() == {"engine_name": "lk-a", "generation": 1, "outcome": "on_disk"}


def test_an_outcome_comes_back_from_json() -> None:
    full = Outcome("lk-a", 1, "failed", "why", "capacity", {"fetch": 3}, "boot-1", 99)
    assert Outcome.from_json(json.loads(json.dumps(full.to_json()))) == full


def test_an_unknown_outcome_is_not_read() -> None:
    with pytest.raises(ValueError, match="not an outcome"):
        Outcome.from_json({"engine_name": "lk-a", "generation": 1, "outcome": "melted"})


def client(answer: httpx.Response | Exception) -> WebClient:
    def handle(request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == "Bearer lk_token"
        assert request.url == "http://web.test/api/v1/node/report"
        if isinstance(answer, Exception):
            raise answer
        return answer

    return WebClient("http://web.test", "lk_token", transport=httpx.MockTransport(handle))


def test_a_report_is_posted_with_the_token() -> None:
    answer = client(httpx.Response(200, json={"ok": True, "unknown": ["lk-x"]})).report({"boot_id": "b"})
    assert answer["unknown"] == ["lk-x"]


@pytest.mark.parametrize("status", [400, 404, 409, 422])
def test_a_refused_body_is_refused_for_ever(status: int) -> None:
    with pytest.raises(WebRefusedError):
        client(httpx.Response(status, json={"title": "no"})).report({})


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(401),
        httpx.Response(403),
        httpx.Response(302, headers={"Location": "http://evil.test/"}),
        httpx.Response(429),
        httpx.Response(502),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[]),
        httpx.ConnectError("refused"),
    ],
)
def test_anything_else_may_pass_with_time(answer: httpx.Response | Exception) -> None:
    with pytest.raises(WebAwayError):
        client(answer).report({})


def test_the_nodes_token_never_goes_to_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert not WebClient("http://web.test", "lk_token")._http._mounts
    assert not Fetcher()._http._mounts


def test_a_message_with_what_no_text_may_hold_can_be_told() -> None:
    body = Outcome("lk-a", 1, "failed", "key \ud800\0 is\nunknown", "refused").to_json()
    assert body["message"] == "key    is unknown"


def test_names_that_are_no_text_do_not_keep_a_report_from_being_sent() -> None:
    assert client(httpx.Response(200, json={"ok": True})).report({"loaded": ["\ud800"]}) == {"ok": True}


def test_a_page_that_is_not_found_by_somebody_else_than_web_is_tried_again() -> None:
    with pytest.raises(WebAwayError):
        client(httpx.Response(404, html="<h1>no such host</h1>")).report({})


@pytest.mark.parametrize(("status", "fails"), [(500, True), (502, False), (503, False), (504, False)])
def test_web_that_fails_is_told_from_web_that_is_away(status: int, fails: bool) -> None:
    with pytest.raises(WebAwayError) as caught:
        client(httpx.Response(status)).report({})
    assert isinstance(caught.value, WebFailedError) is fails
