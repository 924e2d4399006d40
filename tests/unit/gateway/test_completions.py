import asyncio
import json
import time
from uuid import UUID

import pytest

from gateway.cold import ColdLoads
from gateway.completions import Ask, CompletionPath, is_warm
from gateway.demand import DemandAnswer, DemandState
from gateway.errors import (
    EngineBroken,
    EngineDropped,
    EngineLostVersion,
    EngineUnreachable,
    GatewayError,
    ModelNotFound,
    NotWarmInTime,
    VersionMismatch,
    VersionRevoked,
)
from gateway.routing.absences import Absences
from gateway.routing.current import CurrentSnapshot
from gateway.trace import Trace
from gateway.upstream.ports import EngineAnswer, EngineCall
from tests.unit.gateway.fakes import SSE_MEDIA, Client, FakeUpstream, answer, said_by
from tests.unit.gateway.worlds import V1, V2, World, acme_world, node_row, residency_row, version_row


class Gateway:
    """The completion path over fakes; a demand loads the version on `n9` when `loads` is set."""

    def __init__(self, world: World, *, loads: bool = False, cold_wait_s: float = 0.3, absent_s: float = 2.0) -> None:
        self.world, self.loads = world, loads
        self.current = CurrentSnapshot()
        self.current.publish(world.snapshot())
        self.upstream = FakeUpstream(lambda call: said_by(json.loads(call.body)["model"]))
        absences = Absences(lasts_s=absent_s)
        self.demands: list[UUID] = []
        cold = ColdLoads(
            demand=self,
            current=self.current,
            is_warm=lambda version_id: is_warm(self.current, absences, version_id),
            max_waiting=10,
            max_waiting_each=10,
            look_s=0.02,
        )
        self.path = CompletionPath(
            current=self.current, absences=absences, cold=cold, upstream=self.upstream, cold_wait_s=cold_wait_s
        )

    async def ask(self, version_id: UUID) -> DemandAnswer:
        self.demands.append(version_id)
        if self.loads:
            row = next(row for row in self.world.versions if row[0] == version_id)
            self.world.nodes.append(node_row("n9"))
            self.world.residencies.append(residency_row("n9", row))
            self.current.publish(self.world.snapshot())
        return DemandAnswer(DemandState.LOADING)

    async def serve(self, client: Client, model: object = "support", **more: object) -> Trace:
        trace = Trace(request_id="req-1", tenant="acme")
        ask = Ask(
            path="/v1/completions",
            headers={"authorization": "Bearer secret", "cookie": "a=b", "accept": "*/*", "traceparent": "00-1"},
            body={"model": model, "prompt": "hi", **more},
        )
        await self.path.serve(ask, trace=trace, responder=client.responder())
        return trace


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
    assert call.url == "http://engine.invalid/v1/completions"
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
    assert (client.headers["x-lorekeeper-node"], client.headers["x-lorekeeper-tier"]) == ("n9", "cold")
    assert trace.load_s > 0


async def test_a_version_that_stays_cold_is_given_up_in_time() -> None:
    world = acme_world()
    world.residencies.clear()
    gateway, client = Gateway(world), Client()
    began = time.monotonic()
    with pytest.raises(NotWarmInTime):
        await gateway.serve(client)
    assert 0.25 < time.monotonic() - began < 1
    assert not client.sent


async def test_an_alias_moved_during_the_wait_is_followed() -> None:
    world = acme_world()
    world.residencies[0] = residency_row("n1", world.versions[1])
    gateway, client = Gateway(world, cold_wait_s=5), Client()

    async def move(version_id: UUID) -> DemandAnswer:
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
    world = acme_world()
    world.nodes.append(node_row("n2"))
    world.residencies.append(residency_row("n2", world.versions[0]))
    gateway, client = Gateway(world), Client()
    gateway.upstream.script = [fault]
    await gateway.serve(client)
    assert client.headers["x-lorekeeper-node"] == "n2"
    await gateway.serve(Client())
    assert len(gateway.upstream.calls) == 3
    assert gateway.demands == []


async def test_a_restarted_engine_is_demanded_again_and_retried() -> None:
    gateway, client = Gateway(acme_world(), absent_s=0.1, cold_wait_s=2), Client()
    gateway.upstream.script = [answer(b"{}", status=404), answer(b"{}", status=404)]
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
    assert gateway.path.totals.in_flight.total() == 0
    assert gateway.upstream.open_now == 0


async def test_nodes_that_stay_away_longer_than_they_are_passed_over_end_the_request_in_time() -> None:
    world = acme_world()
    world.nodes.append(node_row("n2"))
    world.residencies.append(residency_row("n2", world.versions[0]))
    gateway, client = Gateway(world, absent_s=0.0), Client()
    gateway.upstream.default = lambda _: EngineUnreachable("x")
    gateway.upstream.takes_s = 0.05
    with pytest.raises(EngineUnreachable):
        await asyncio.wait_for(gateway.serve(client), 3)
    assert len(gateway.upstream.calls) < 10


@pytest.mark.parametrize("media", ["application/json", "text/event-stream"])
async def test_a_version_revoked_while_the_engine_thinks_does_not_begin_to_answer(media: str) -> None:
    world = acme_world()
    gateway, client = Gateway(world), Client()

    def revoke(_call: EngineCall) -> EngineAnswer | GatewayError:
        world.versions[0] = version_row(V1, "v1", state="revoked")
        gateway.current.publish(world.snapshot())
        body = b'data: {"model": "lk-support-tone-v1-acme"}\n\n'
        return answer(body if media != "application/json" else body[6:], headers={"content-type": media})

    gateway.upstream.default = revoke
    with pytest.raises(VersionRevoked):
        await gateway.serve(client)
    assert not client.sent


@pytest.mark.parametrize("value", ["é", "text/html ", " a", "a\tb", "x" * 2000, ""])
async def test_a_header_that_no_engine_would_take_is_left_out(value: str) -> None:
    gateway = Gateway(acme_world())
    ask = Ask("/v1/completions", {"accept": value, "tracestate": value}, {"model": "support"})
    await gateway.path.serve(ask, trace=Trace(request_id="req-1", tenant="acme"), responder=Client().responder())
    assert set(gateway.upstream.calls[0].headers) == {"content-type", "x-request-id"}
