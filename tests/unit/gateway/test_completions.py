import asyncio
import json
import time

import pytest

from gateway.demand import Demand, DemandAnswer, DemandState
from gateway.errors import (
    EndpointNotServed,
    EngineBroken,
    EngineBusy,
    EngineDropped,
    EngineFailed,
    EngineLostVersion,
    EngineSilent,
    EngineUnreachable,
    GatewayError,
    ModelNotFound,
    NotWarmInTime,
    TokensExceeded,
    VersionMismatch,
    VersionRevoked,
)
from gateway.surface.endpoints import EMBEDDINGS, RESPONSES
from gateway.upstream.ports import EngineCall
from tests.unit.gateway.fakes import SSE_MEDIA, Client, FakeAnswer, answer, said_by
from tests.unit.gateway.paths import Gateway
from tests.unit.gateway.worlds import V1, V2, World, acme_world, node_row, residency_row, version_row

NAME = "lk-support-tone-v1-acme"


def lost() -> FakeAnswer:
    """What vLLM says of an adapter that it doesn't know any more."""
    error = {"message": f"The model `{NAME}` does not exist.", "type": "NotFoundError", "param": "model", "code": 404}
    return answer(json.dumps({"error": error}).encode(), status=404)


def two_nodes() -> World:
    """The version is loaded on n1 and n2."""
    world = acme_world()
    world.nodes.append(node_row("n2"))
    world.residencies.append(residency_row("n2", world.versions[0]))
    return world


async def test_a_warm_version_is_answered_by_its_node() -> None:
    gateway, client = Gateway(acme_world()), Client()
    trace = await gateway.serve(client)
    assert client.status == 200
    assert client.headers["x-lorekeeper-version"] == "acme/support-tone@v1"
    assert client.headers["x-lorekeeper-node"] == "n1"
    assert client.headers["x-lorekeeper-tier"] == "gpu"
    assert gateway.demands == []
    record = trace.record(status=200, error_kind="")
    assert (record.alias, record.node, record.tier, record.load_ms) == ("support", "n1", "gpu", 0)
    assert (record.prompt_tokens, record.completion_tokens) == (3, 5)


@pytest.mark.parametrize("model", ["support", "acme/support"])
async def test_the_clients_model_name_is_never_forwarded(model: str) -> None:
    gateway = Gateway(acme_world())
    await gateway.serve(Client(), model, unknown={"kept": [1, 2.5, None]})
    call = gateway.upstream.calls[0]
    assert (call.engine_url, call.path) == ("http://engine.invalid", "/v1/completions")
    assert json.loads(call.body) == {
        "model": "lk-support-tone-v1-acme",
        "prompt": "hi",
        "unknown": {"kept": [1, 2.5, None]},
    }


async def test_the_clients_credentials_stay_in_the_gateway() -> None:
    gateway = Gateway(acme_world())
    await gateway.serve(Client())
    call = gateway.upstream.calls[0]
    assert set(call.headers) == {"accept", "traceparent", "content-type", "x-request-id"}
    assert "secret" not in repr(call)


async def test_an_unknown_model_never_reaches_an_engine() -> None:
    gateway, client = Gateway(acme_world()), Client()
    with pytest.raises(ModelNotFound):
        await gateway.serve(client, "lk-support-tone-v1-acme")
    assert gateway.upstream.calls == []
    assert gateway.demands == []


async def test_a_cold_version_is_loaded_once_and_then_answers() -> None:
    world = acme_world()
    world.residencies.clear()
    gateway, client = Gateway(world, loads=True), Client()
    trace = await gateway.serve(client)
    assert len(gateway.demands) == 1
    assert (client.headers["x-lorekeeper-node"], client.headers["x-lorekeeper-tier"]) == ("n9", "remote")
    assert trace.load_s > 0


async def test_a_version_that_stays_cold_is_given_up_in_time() -> None:
    world = acme_world()
    world.residencies.clear()
    gateway, client = Gateway(world), Client()
    began = time.monotonic()
    async with asyncio.timeout(60):
        with pytest.raises(NotWarmInTime):
            await gateway.serve(client)
    assert time.monotonic() - began > 0.25
    assert not client.sent


async def test_an_alias_moved_during_the_wait_is_followed() -> None:
    world = acme_world()
    world.residencies[0] = residency_row("n1", world.versions[1])
    gateway, client = Gateway(world, cold_wait_s=5), Client()

    async def move(demand: Demand) -> DemandAnswer:
        world.aliases[0] = ("acme", "support", V2, 2)
        gateway.current.publish(world.snapshot())
        return DemandAnswer(DemandState.LOADING)

    gateway.ask = move  # type: ignore[method-assign]  # the control plane of this one test
    await gateway.serve(client)
    assert client.headers["x-lorekeeper-version"] == "acme/support-tone@v2"


@pytest.mark.parametrize("fault", [EngineLostVersion("x"), EngineUnreachable("x")])
async def test_another_node_answers_when_one_has_lost_the_version(
    fault: EngineLostVersion | EngineUnreachable,
) -> None:
    gateway, client = Gateway(two_nodes()), Client()
    gateway.upstream.script = [fault]
    first = await gateway.serve(client)
    again = await gateway.serve(Client())
    assert client.headers["x-lorekeeper-node"] == first.node == again.node
    assert first.retries == 1
    assert len(gateway.upstream.calls) == 3
    assert gateway.demands == []


async def test_a_restarted_engine_is_demanded_again_and_retried() -> None:
    gateway, client = Gateway(acme_world(), absent_s=0.1, cold_wait_s=2), Client()
    gateway.upstream.script = [lost(), lost()]
    await gateway.serve(client)
    assert client.status == 200
    assert len(gateway.upstream.calls) == 3
    assert len(gateway.demands) == 2


async def test_an_engine_that_stays_away_is_given_up_in_time() -> None:
    gateway, client = Gateway(acme_world(), absent_s=0.1), Client()
    gateway.upstream.default = lambda _: EngineUnreachable("x")
    with pytest.raises(NotWarmInTime):
        await gateway.serve(client)
    assert len(gateway.upstream.calls) < 6


async def test_a_dropped_connection_is_tried_once_more_and_no_more() -> None:
    gateway, client = Gateway(acme_world()), Client()
    gateway.upstream.script = [EngineDropped("x")]
    await gateway.serve(client)
    assert client.status == 200
    gateway.upstream.script = [EngineDropped("x"), EngineDropped("x")]
    with pytest.raises(EngineDropped):
        await gateway.serve(Client())
    assert len(gateway.upstream.calls) == 4


async def test_nothing_is_tried_again_after_the_first_byte() -> None:
    gateway, client = Gateway(acme_world()), Client()
    first = b'data: {"model": "lk-support-tone-v1-acme"}\n\n'
    gateway.upstream.script = [answer(first, headers=SSE_MEDIA, breaks=True)]
    with pytest.raises(EngineBroken):
        await gateway.serve(client)
    assert len(gateway.upstream.calls) == 1
    assert client.body == first
    assert not client.complete


async def test_an_answer_by_another_version_is_counted_and_fails() -> None:
    gateway, client = Gateway(acme_world()), Client()
    gateway.upstream.script = [said_by("base")]
    with pytest.raises(VersionMismatch):
        await gateway.serve(client)
    assert gateway.path.totals.version_mismatch == 1
    assert len(gateway.upstream.calls) == 1
    assert not client.sent


async def test_requests_in_flight_are_counted_and_counted_off() -> None:
    gateway = Gateway(acme_world())
    await gateway.serve(Client())
    gateway.upstream.script = [said_by("base")]
    with pytest.raises(VersionMismatch):
        await gateway.serve(Client())
    assert gateway.joined.fleet.in_flight == 0
    assert gateway.upstream.open_now == 0


async def test_nodes_that_stay_away_longer_than_they_are_passed_over_end_the_request_in_time() -> None:
    gateway, client = Gateway(two_nodes(), absent_s=0.0), Client()
    gateway.upstream.default = lambda _: EngineUnreachable("x")
    gateway.upstream.takes_s = 0.05
    with pytest.raises(EngineUnreachable):
        await asyncio.wait_for(gateway.serve(client), 3)
    assert len(gateway.upstream.calls) < 10


@pytest.mark.parametrize("media", ["application/json", "text/event-stream"])
async def test_a_version_revoked_while_the_engine_thinks_does_not_begin_to_answer(media: str) -> None:
    world = acme_world()
    gateway, client = Gateway(world), Client()

    def revoke(_call: EngineCall) -> FakeAnswer | GatewayError:
        world.versions[0] = version_row(V1, "v1", state="revoked")
        gateway.current.publish(world.snapshot())
        body = b'data: {"model": "lk-support-tone-v1-acme"}\n\n'
        return answer(body if media != "application/json" else body[6:], headers={b"content-type": media.encode()})

    gateway.upstream.default = revoke
    with pytest.raises(VersionRevoked):
        await gateway.serve(client)
    assert not client.sent


@pytest.mark.parametrize("value", ["é", "text/html ", " a", "a\tb", "x" * 2000, ""])
async def test_a_header_that_no_engine_would_take_is_left_out(value: str) -> None:
    gateway = Gateway(acme_world())
    await gateway.serve(Client(), headers={"accept": value, "tracestate": value})
    assert set(gateway.upstream.calls[0].headers) == {"content-type", "x-request-id"}


@pytest.mark.parametrize("fault", [EngineFailed("x"), EngineBusy("x"), VersionMismatch("x")])
async def test_a_node_that_fails_before_the_first_byte_is_made_up_for_by_another(fault: GatewayError) -> None:
    gateway, client = Gateway(two_nodes()), Client()
    gateway.upstream.script = [fault]
    trace = await gateway.serve(client)
    assert client.status == 200
    assert client.headers["x-lorekeeper-node"] == trace.node
    assert trace.record(status=200, error_kind="").retries == 1
    assert gateway.path.totals.retries == 1


@pytest.mark.parametrize("status", [500, 502, 503, 429])
async def test_a_request_that_every_engine_fails_on_is_tried_twice_and_no_more(status: int) -> None:
    gateway, client = Gateway(two_nodes()), Client()
    gateway.upstream.default = lambda _: answer(b'{"error": {"message": "/srv/engine failed"}}', status=status)
    with pytest.raises((EngineFailed, EngineBusy)):
        await gateway.serve(client)
    assert len(gateway.upstream.calls) == 2
    assert not client.sent


async def test_a_failure_of_the_only_node_is_not_repeated_on_it() -> None:
    gateway = Gateway(acme_world())
    gateway.upstream.default = lambda _: EngineFailed("x")
    with pytest.raises(EngineFailed):
        await gateway.serve(Client())
    assert len(gateway.upstream.calls) == 1


async def test_an_engine_that_hangs_is_not_asked_again() -> None:
    gateway = Gateway(two_nodes())
    gateway.upstream.default = lambda _: EngineSilent("x")
    with pytest.raises(EngineSilent):
        await gateway.serve(Client())
    assert len(gateway.upstream.calls) == 1


async def test_retries_end_where_they_would_become_the_load() -> None:
    gateway = Gateway(two_nodes())
    gateway.upstream.default = lambda _: EngineBusy("x")
    for _ in range(100):
        with pytest.raises(EngineBusy):
            await gateway.serve(Client())
    assert 100 + 10 <= len(gateway.upstream.calls) <= 100 + 10 + 20


async def test_a_refusal_by_the_engine_reaches_the_client_without_its_names() -> None:
    gateway, client = Gateway(acme_world()), Client()
    error = {"message": f"{NAME} has 1024 tokens", "type": "BadRequestError", "param": "max_tokens", "code": 400}
    gateway.upstream.script = [answer(json.dumps({"error": error}).encode(), status=400)]
    trace = await gateway.serve(client, "acme/support")
    assert client.status == 400
    assert json.loads(client.body)["error"] == {
        **error,
        "message": "acme/support has 1024 tokens",
        "code": "engine_refused",
    }
    assert client.headers["x-lorekeeper-version"] == "acme/support-tone@v1"
    assert trace.first_byte_at
    assert gateway.joined.fleet.states["n1"].breaker.state(time.monotonic()) == "closed"


async def test_a_path_that_the_engine_does_not_serve_costs_the_version_nothing() -> None:
    gateway = Gateway(acme_world())
    gateway.upstream.script = [answer(b'{"detail":"Not Found"}', status=404)]
    with pytest.raises(EndpointNotServed):
        await gateway.serve(Client(), endpoint=EMBEDDINGS)
    assert gateway.demands == []
    await gateway.serve(Client())
    assert len(gateway.upstream.calls) == 2


async def test_no_engine_is_let_to_keep_an_answer() -> None:
    gateway = Gateway(acme_world())
    await gateway.serve(Client(), endpoint=RESPONSES, store=True, input="hi")
    call = gateway.upstream.calls[0]
    assert call.path == "/v1/responses"
    assert json.loads(call.body)["store"] is False


async def test_times_and_path_stand_in_the_record() -> None:
    gateway = Gateway(acme_world())
    gateway.upstream.takes_s = 0.02
    record = (await gateway.serve(Client(), endpoint=EMBEDDINGS)).record(status=200, error_kind="")
    assert record.path == "embeddings"
    assert 15 <= record.engine_ms <= record.total_ms
    assert (record.side, record.fallback, record.is_shadow, record.version_id) == ("", "", False, V1)


async def test_a_stream_that_ends_well_teaches_the_pace_of_its_node() -> None:
    gateway = Gateway(acme_world())
    gateway.upstream.takes_s = 0.01
    before = gateway.joined.fleet.states["n1"].pace.mean_tokens
    await gateway.serve(Client())
    assert gateway.joined.fleet.states["n1"].pace.mean_tokens == before
    usage = {"prompt_tokens": 3, "completion_tokens": 5}
    event = {"model": NAME, "choices": [], "usage": usage}
    gateway.upstream.script = [answer(f"data: {json.dumps(event)}\n\n".encode(), headers=SSE_MEDIA)]
    await gateway.serve(Client(), stream=True)
    assert gateway.joined.fleet.states["n1"].pace.mean_tokens < before


async def test_a_stream_that_breaks_without_a_count_is_charged_what_the_client_got() -> None:
    world = acme_world()
    world.rules = [("acme", None, 60, None, None, [], False)]
    gateway = Gateway(world)
    event = f"data: {json.dumps({'model': NAME, 'choices': []})}\n\n".encode()
    gateway.upstream.script = [answer(*[event] * 300, headers=SSE_MEDIA, breaks=True)]
    with pytest.raises(EngineBroken):
        await gateway.serve(Client(), stream=True, max_tokens=1)
    # The body's 25 and the 300 events: minutes of debt.
    with pytest.raises(TokensExceeded):
        await gateway.serve(Client(), max_tokens=1)
