"""The relay before an engine that answers with what it was asked."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest

from bench.release.plan import Plan
from bench.release.relay import Fault, Relay

PLAN = Plan(slow_s=0.3, failing=1.0)


class Engine(BaseHTTPRequestHandler):
    """Repeats the body that came: as it is, or in chunks if a stream was asked for."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        if json.loads(body)["stream"]:
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for byte in body:
                self.wfile.write(b"1\r\n%c\r\n" % byte)
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def relay() -> Iterator[Relay]:
    engine = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    engine.daemon_threads = True
    server = Thread(target=engine.serve_forever, daemon=True)
    server.start()
    with Relay(PLAN) as made:
        made.upstream = ("127.0.0.1", engine.server_port)
        yield made
    engine.shutdown()
    server.join()
    engine.server_close()


@pytest.fixture
def http(relay: Relay) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=relay.url, trust_env=False) as client:
        yield client


def ask(http: httpx.Client, model: str = "v1", *, stream: bool = False) -> httpx.Response:
    return http.post("/v1/completions", json={"model": model, "temperature": 0, "stream": stream})


def asked(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200
    return dict(answer.json())


@pytest.mark.parametrize("stream", [True, False])
def test_a_sound_version_is_asked_and_answers_as_without_the_relay(http: httpx.Client, stream: bool) -> None:
    for _time in range(3):
        assert asked(ask(http, stream=stream)) == {"model": "v1", "temperature": 0, "stream": stream}
    assert http.get("/health").status_code == 200


def test_a_slow_version_answers_later_and_the_others_as_before(relay: Relay, http: httpx.Client) -> None:
    relay.afflict("v2", Fault.SLOW)

    assert ask(http, "v2").elapsed.total_seconds() >= PLAN.slow_s
    assert asked(ask(http, "v1"))["model"] == "v1"
    assert relay.touched == {Fault.SLOW: 1}


def test_a_failing_version_is_not_even_asked(relay: Relay, http: httpx.Client) -> None:
    relay.afflict("v2", Fault.FAILING)

    assert ask(http, "v2").status_code == 500
    assert asked(ask(http, "v1"))["model"] == "v1"
    relay.afflict("v2", None)
    assert asked(ask(http, "v2"))["model"] == "v2"


@pytest.mark.parametrize("stream", [True, False])
def test_a_worse_version_is_left_one_token_to_say(relay: Relay, http: httpx.Client, stream: bool) -> None:
    relay.afflict("v2", Fault.WORSE)

    assert asked(ask(http, "v2", stream=stream))["allowed_token_ids"]
    assert "allowed_token_ids" not in asked(ask(http, "v1", stream=stream))
