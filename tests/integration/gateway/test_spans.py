"""Spans of real requests at a receiver that speaks OTLP over HTTP."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from gateway.app import create_app
from gateway.settings import Settings
from gateway.spans import sender
from gateway.spans.sender import Receiver, Spans
from gateway.trace import Trace
from gateway.wire.asgi import Receive, Scope, Send
from tests.integration.gateway.conftest import acme_client, gateway_process, ready
from tests.integration.gateway.stubs import Plane, Routing, StubEngine, part, read, serving, start, until

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
BODY: dict[str, Any] = {"model": "support", "messages": [{"role": "user", "content": "where is my secret order?"}]}
METRICS = {"authorization": "Bearer metrics"}


class Collector:
    """What an OpenTelemetry collector does with a request for its traces; `is_away` answers that it can't."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[bytes] = []
        self.headers: list[dict[bytes, bytes]] = []
        self.is_away = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read(receive)
        self.headers.append(dict(scope["headers"]))
        if not self.is_away:
            self.bodies.append(body)
        await start(send, status=400 if self.is_away else 200, media="application/x-protobuf")
        await part(send, b"", more=False)

    def spans(self) -> list[Span]:
        return [span for _resource, span in self._received()]

    def services(self) -> set[str]:
        return {value for resource, _span in self._received() for value in [resource["service.name"]]}

    def _received(self) -> Iterator[tuple[dict[str, str], Span]]:
        for body in self.bodies:
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                resource = {one.key: one.value.string_value for one in of_resource.resource.attributes}
                for of_scope in of_resource.scope_spans:
                    yield from ((resource, span) for span in of_scope.spans)


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    made = Collector()
    async with serving(made) as url:
        made.url = f"{url}/v1/traces"
        yield made


@pytest.fixture
async def traced_url(gateway_settings: Settings, engine: StubEngine, collector: Collector) -> AsyncIterator[str]:
    receiver = Receiver(collector.url, "x-key=of-the-collector")
    settings = replace(gateway_settings, traces=receiver, metrics_token="metrics")
    async with serving(create_app(settings), lifespan="on") as url:
        await ready(url)
        yield url


def said(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "") for one in span.attributes}


async def spans_at(collector: Collector, count: int) -> list[Span]:
    async def are_there() -> bool:
        return len(collector.spans()) >= count

    await until(are_there, seconds=20)
    return sorted(collector.spans(), key=lambda span: span.kind)


async def test_a_request_is_two_spans_below_its_callers_and_the_engines_would_be_below_them(
    traced_url: str, engine: StubEngine, collector: Collector
) -> None:
    async with acme_client(traced_url) as client:
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
        answer = await client.post("/v1/chat/completions", json=BODY, headers=headers)
    assert answer.status_code == 200
    own, call = await spans_at(collector, 2)
    assert (own.kind, call.kind) == (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT)
    assert {own.trace_id.hex(), call.trace_id.hex()} == {TRACE}
    assert (own.parent_span_id.hex(), call.parent_span_id) == (PARENT, own.span_id)
    assert own.trace_state == "vendor=1"
    assert own.start_time_unix_nano <= call.start_time_unix_nano
    assert call.end_time_unix_nano <= own.end_time_unix_nano
    assert (
        said(own).items()
        >= {
            "lorekeeper.tenant": "acme",
            "lorekeeper.alias": "support",
            "lorekeeper.node": "n1",
            "lorekeeper.request_id": answer.headers["x-lorekeeper-request-id"],
            "lorekeeper.tier": answer.headers["x-lorekeeper-tier"],
            "http.response.status_code": 200,
        }.items()
    )
    assert engine.headers[-1]["traceparent"] == f"00-{TRACE}-{call.span_id.hex()}-01"
    assert collector.services() == {"lorekeeper-gateway"}
    assert collector.headers[-1][b"x-key"] == b"of-the-collector"
    assert not any(b"secret order" in body for body in collector.bodies)


async def test_a_request_that_is_refused_is_a_span_without_a_call(traced_url: str, collector: Collector) -> None:
    async with acme_client(traced_url) as client:
        assert (await client.post("/v1/chat/completions", content=b"{")).status_code in (400, 415)
    (own,) = await spans_at(collector, 1)
    assert own.kind == Span.SPAN_KIND_SERVER
    assert said(own)["error.type"]


async def test_what_the_receiver_does_not_take_is_counted_and_requests_go_on(
    traced_url: str, collector: Collector
) -> None:
    collector.is_away = True
    async with acme_client(traced_url) as client:

        async def is_counted() -> bool:
            page = (await client.get("/metrics", headers=METRICS)).text
            return "lorekeeper_gateway_spans_dropped 1.0" in page and "lorekeeper_gateway_spans_pending 0.0" in page

        assert (await client.post("/v1/chat/completions", json=BODY)).status_code == 200
        await until(is_counted, seconds=20)
        collector.is_away = False
        assert (await client.post("/v1/chat/completions", json=BODY)).status_code == 200
        await spans_at(collector, 2)


async def test_a_sender_that_dies_is_started_again_and_what_it_had_is_counted_as_lost(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "_PAUSE_S", 0.1)
    spans = Spans(Receiver(collector.url), adapter_of=lambda _version: None)
    running = asyncio.create_task(spans.run())

    async def is_up() -> bool:
        return spans._child is not None and spans._child.returncode is None

    await until(is_up)
    assert spans._child is not None
    os.kill(spans._child.pid, signal.SIGSTOP)
    end_a_request(spans)
    await asyncio.sleep(0.6)
    spans._child.kill()

    async def is_counted() -> bool:
        return spans.dropped == 1 and spans.pending == 0

    await until(is_counted)
    end_a_request(spans)
    await spans_at(collector, 1)
    running.cancel()
    await asyncio.wait({running})
    await spans.close(timeout_s=5)
    assert (spans.sent, spans.dropped) == (1, 1)


async def test_where_no_sender_can_be_started_the_gateway_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "_PAUSE_S", 0.01)
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    spans = Spans(Receiver("http://127.0.0.1:9/v1/traces"), adapter_of=lambda _version: None)
    running = asyncio.create_task(spans.run())
    await asyncio.sleep(0.2)
    assert not running.done()
    running.cancel()
    await asyncio.wait({running})
    await spans.close(timeout_s=1)


def end_a_request(spans: Spans) -> None:
    trace = Trace("req-1", tenant="acme", path="chat")
    spans.begin(trace, {})
    spans.end(trace, trace.record(status=200, error_kind=""), route="/v1/chat/completions")


async def test_a_gateway_that_ends_sends_the_last_ones_and_its_sender_knows_none_of_its_secrets(
    routing: Routing, engine: StubEngine, plane: Plane, collector: Collector
) -> None:
    more = {"LOREKEEPER_GATEWAY_TRACES_URL": collector.url, "OTEL_RESOURCE_ATTRIBUTES": "service.name=edge"}
    async with gateway_process(routing.gateway_url, plane.url, **more) as (process, url):
        async with acme_client(url) as client:
            await client.post("/v1/chat/completions", json=BODY)
        process.terminate()
        await asyncio.wait_for(process.wait(), 20)
    assert len(await spans_at(collector, 2)) == 2
    assert collector.services() == {"edge"}


async def test_without_the_setting_nothing_of_opentelemetry_is_loaded() -> None:
    code = "import sys, gateway.app, gateway.__main__; print([one for one in sys.modules if 'opentelemetry' in one])"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    assert told.strip() == b"[]"
