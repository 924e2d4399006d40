from collections.abc import Callable

import httpx
import pytest

from client.errors import (
    ApiError,
    Conflict,
    NotAuthenticated,
    PermissionDenied,
    ServerFailed,
    ServerUnreachable,
    UnexpectedAnswer,
    UploadIncomplete,
    VersionExists,
)
from client.retry import RetryPolicy
from client.transport import DIRECT, Transport, path_of

Answer = Callable[[httpx.Request], httpx.Response]


class Server:
    """Answers from a list, one entry per request, the last one for ever."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def transport(self) -> Transport:
        http = httpx.Client(transport=httpx.MockTransport(self))
        retry = RetryPolicy(attempts=3, sleep=self.pauses.append)
        return Transport(url="http://registry.test", token="lk_secret", retry=retry, http=http)


def refusal(status: int, **problem: object) -> httpx.Response:
    return httpx.Response(status, json=problem, headers={"content-type": "application/problem+json"})


def test_every_call_carries_the_token_and_asks_for_json() -> None:
    server = Server(httpx.Response(200, json={"ok": True}))
    assert server.transport().call("GET", path_of("whoami")) == {"ok": True}
    request = server.requests[0]
    assert str(request.url) == "http://registry.test/api/v1/whoami"
    assert request.headers["authorization"] == "Bearer lk_secret"
    assert request.headers["accept"] == "application/json"


def test_a_name_cannot_climb_out_of_its_place_in_the_path() -> None:
    assert path_of("tenants", "../nodes", "a?b#c") == "/api/v1/tenants/..%2Fnodes/a%3Fb%23c"


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_an_idempotent_call_is_tried_again_when_the_server_is_busy_or_away(status: int) -> None:
    server = Server(httpx.Response(status), httpx.Response(status), httpx.Response(200, json=1))
    assert server.transport().call("GET", "/x") == 1
    assert len(server.requests) == 3
    assert len(server.pauses) == 2


def test_an_idempotent_call_is_tried_again_when_the_connection_breaks() -> None:
    server = Server(httpx.ConnectError("refused"), httpx.ReadTimeout("late"), httpx.Response(200, json=1))
    assert server.transport().call("PUT", "/x", body={"a": 1}) == 1
    assert [request.content for request in server.requests] == [b'{"a": 1}'] * 3


def test_a_call_that_is_not_idempotent_is_never_tried_again() -> None:
    server = Server(httpx.Response(503, json={"detail": "Busy.", "code": "busy"}))
    with pytest.raises(ServerFailed, match="Busy"):
        server.transport().call("PUT", "/x", body={}, idempotent=False)
    broken = Server(httpx.ReadError("reset"))
    with pytest.raises(ServerUnreachable):
        broken.transport().call("PUT", "/x", body={}, idempotent=False)
    assert (len(server.requests), len(broken.requests)) == (1, 1)


def test_a_post_is_tried_again_under_the_same_key_and_the_next_post_has_another() -> None:
    server = Server(httpx.ReadError("reset"), httpx.Response(200, json=1), httpx.Response(200, json=1))
    transport = server.transport()
    transport.call("POST", "/x", body={})
    transport.call("POST", "/x", body={})
    first, again, second = (request.headers["Idempotency-Key"] for request in server.requests)
    assert first == again != second


def test_a_post_whose_first_try_is_still_running_is_tried_again_when_the_server_says() -> None:
    server = Server(httpx.Response(409, headers={"retry-after": "1"}), httpx.Response(200, json=1))
    assert server.transport().call("POST", "/x", body={}) == 1
    assert server.pauses == [1.0]


@pytest.mark.parametrize("status", [400, 401, 404, 409, 500])
def test_other_refusals_are_never_tried_again(status: int) -> None:
    server = Server(refusal(status, detail="No.", code="no"))
    with pytest.raises(ApiError):
        server.transport().call("GET", "/x")
    assert len(server.requests) == 1


def test_retry_after_in_seconds_takes_the_place_of_the_back_off() -> None:
    server = Server(httpx.Response(503, headers={"retry-after": "7"}), httpx.Response(200, json=1))
    server.transport().call("GET", "/x")
    assert server.pauses == [7.0]


def test_after_all_tries_the_address_is_named_without_its_query() -> None:
    server = Server(httpx.ConnectError("Connection refused"))
    with pytest.raises(ServerUnreachable, match=r"http://registry\.test/x can't be reached: Connection refused"):
        server.transport().call("GET", "/x", params={"secret": "s"})


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "not_authenticated", NotAuthenticated),
        (403, "permission_denied", PermissionDenied),
        (409, "version_exists", VersionExists),
        (409, "upload_incomplete", UploadIncomplete),
        (409, "stale_state", Conflict),
        (500, "bug", ServerFailed),
        (418, "teapot", ApiError),
    ],
)
def test_a_problem_becomes_the_error_of_its_code_and_status(status: int, code: str, kind: type[ApiError]) -> None:
    server = Server(refusal(status, detail="Because.", code=code, field="weights.safetensors"))
    with pytest.raises(ApiError) as caught:
        server.transport().call("GET", "/x")
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.code, error.detail, error.field) == (status, code, "Because.", "weights.safetensors")
    assert str(error) == "weights.safetensors: Because."
    assert error.to_json()["field"] == "weights.safetensors"


def test_an_error_page_of_a_proxy_is_still_one_sentence() -> None:
    server = Server(httpx.Response(400, html="<h1>Bad</h1>"))
    with pytest.raises(ApiError, match="status 400") as caught:
        server.transport().call("GET", "/x")
    assert caught.value.code == "http_400"


@pytest.mark.parametrize(
    "answer", [httpx.Response(200, html="<h1>Hi</h1>"), httpx.Response(302, headers={"location": "http://else/"})]
)
def test_an_answer_of_another_service_is_refused(answer: httpx.Response) -> None:
    server = Server(answer)
    with pytest.raises(UnexpectedAnswer, match="check the address"):
        server.transport().call("GET", "/x")
    assert len(server.requests) == 1


def test_a_redirect_is_returned_and_not_followed() -> None:
    server = Server(httpx.Response(302, headers={"location": "http://store.test/k?sig=1"}))
    assert server.transport().location("/x") == "http://store.test/k?sig=1"
    assert [request.url.host for request in server.requests] == ["registry.test"]


def test_an_empty_answer_is_null() -> None:
    assert Server(httpx.Response(204)).transport().call("DELETE", "/x") is None


def test_lines_are_split_at_line_feeds_only() -> None:
    server = Server(httpx.Response(200, content='{"a":"x\u2028y"}\n{"b":1}'.encode()))
    with server.transport().lines("/x") as lines:
        assert list(lines) == ['{"a":"x\u2028y"}', '{"b":1}']


GZIP = {"content-encoding": "gzip"}
BROKEN_ANSWERS = {
    "gzip that is none": lambda: httpx.Response(200, headers=GZIP, stream=httpx.ByteStream(b"no gzip at all")),
    "nested without an end": lambda: httpx.Response(200, content=b"[" * 200_000),
    "a lone surrogate": lambda: httpx.Response(200, content=b'{"name": "\\ud800"}'),
}


@pytest.mark.parametrize("answer", BROKEN_ANSWERS.values(), ids=BROKEN_ANSWERS)
def test_a_broken_answer_is_an_unexpected_one(answer: Callable[[], httpx.Response]) -> None:
    with pytest.raises(UnexpectedAnswer):
        Server(answer()).transport().call("GET", path_of("whoami"))


def test_a_broken_refusal_is_still_a_refusal() -> None:
    for answer in (httpx.Response(404, content=b"[" * 200_000), httpx.Response(404, content=b'{"detail": "\\ud800"}')):
        with pytest.raises(ApiError) as caught:
            Server(answer).transport().call("GET", path_of("whoami"))
        str(caught.value).encode()


def test_this_machine_is_never_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with httpx.Client(mounts=DIRECT) as http:
        for host in ("127.0.0.1:1", "localhost:1", "[::1]:1"):
            assert http._transport_for_url(httpx.URL(f"http://{host}")) is http._transport
        assert http._transport_for_url(httpx.URL("http://registry.test")) is not http._transport
