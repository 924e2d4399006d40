import asyncio
import json
from collections.abc import Callable

import pytest

from gateway.errors import EngineFailed, EngineUnreachable, GatewayError
from gateway.routing.breaker import BreakerState
from gateway.shadow.mirror import Budget
from gateway.shadow.tap import MOST_BYTES, Tap
from gateway.surface.endpoints import EMBEDDINGS
from gateway.upstream.ports import EngineCall
from tests.unit.gateway.fakes import SSE_MEDIA, Client, FakeAnswer, answer
from tests.unit.gateway.paths import Gateway
from tests.unit.gateway.worlds import V1, V2, World, acme_world, residency_row

STABLE, CANDIDATE = "lk-support-tone-v1-acme", "lk-support-tone-v2-acme"


def shadowed_world(*, share: int = 10_000, is_warm: bool = True, allows_shadow: bool = True) -> World:
    """Every request to `support` (v1) is mirrored to v2, which is loaded on n1 too."""
    world = acme_world()
    world.aliases[0] = ("acme", "support", V1, 1, V2, 0, "salt", [], [], V2, share)
    if is_warm:
        world.residencies.append(residency_row("n1", world.versions[1]))
    if not allows_shadow:
        world.rules.append(("acme", None, None, None, None, [], False))
    return world


def says(texts: dict[str, str]) -> Callable[[EngineCall], FakeAnswer | GatewayError]:
    def reply(call: EngineCall) -> FakeAnswer:
        model = json.loads(call.body)["model"]
        document = {"model": model, "choices": [{"index": 0, "text": texts[model]}], "usage": {"completion_tokens": 4}}
        return answer(json.dumps(document).encode())

    return reply


async def settled(gateway: Gateway) -> None:
    await asyncio.gather(*gateway.joined.mirror._running)


async def test_a_drawn_request_is_asked_of_the_candidate_too_and_compared() -> None:
    gateway, client = Gateway(shadowed_world()), Client()
    gateway.upstream.default = says({STABLE: "abcd", CANDIDATE: "abXX"})
    await gateway.serve(client, stream=True, stream_options={"include_usage": True}, temperature=0)
    await settled(gateway)
    first, second = (json.loads(call.body) for call in gateway.upstream.calls)
    assert (first["model"], second["model"]) == (STABLE, CANDIDATE)
    assert {key for key in first if key not in second} == {"stream", "stream_options"}
    (compared,) = gateway.compared
    assert compared.agreement == pytest.approx(0.5)
    assert (compared.stable_version_id, compared.candidate_version_id) == (V1, V2)
    assert (compared.stable_tokens, compared.candidate_tokens, compared.error_kind) == (4, 4, "")
    (record,) = gateway.records
    assert (record.is_shadow, record.version_id, record.request_id, record.status) == (True, V2, "req-1", 200)
    assert CANDIDATE not in client.body.decode()


async def test_a_streamed_answer_is_compared_with_a_whole_one() -> None:
    gateway = Gateway(shadowed_world())
    events = [{"model": STABLE, "choices": [{"index": 0, "text": text}]} for text in ("ab", "cd")]
    stream = answer(*(f"data: {json.dumps(event)}\n\n".encode() for event in events), headers=SSE_MEDIA)
    gateway.upstream.default = says({CANDIDATE: "abcd"})
    gateway.upstream.script = [stream]
    await gateway.serve(Client(), stream=True)
    await settled(gateway)
    assert [compared.agreement for compared in gateway.compared] == [1.0]


async def test_the_client_has_its_answer_before_the_candidate_is_asked() -> None:
    gateway, client = Gateway(shadowed_world()), Client()
    reply = says({STABLE: "a", CANDIDATE: "a"})
    complete: list[bool] = []

    def look(call: EngineCall) -> FakeAnswer | GatewayError:
        complete.append(client.complete)
        return reply(call)

    gateway.upstream.default = look
    await gateway.serve(client)
    await settled(gateway)
    assert complete == [False, True]


@pytest.mark.parametrize("fault", [EngineFailed("x"), EngineUnreachable("x")])
async def test_a_candidate_that_fails_is_recorded_and_nobody_else_sees_it(
    fault: EngineFailed | EngineUnreachable,
) -> None:
    gateway, client = Gateway(shadowed_world()), Client()
    reply = says({STABLE: "a"})
    gateway.upstream.default = lambda call: fault if CANDIDATE.encode() in call.body else reply(call)
    await gateway.serve(client)
    await settled(gateway)
    assert client.status == 200
    (compared,) = gateway.compared
    assert (compared.agreement, compared.error_kind, compared.candidate_tokens) == (None, fault.code, None)
    assert gateway.joined.fleet.in_flight == 0


@pytest.mark.parametrize(
    "world",
    [shadowed_world(share=0), shadowed_world(allows_shadow=False), shadowed_world(is_warm=False), acme_world()],
)
async def test_nothing_is_mirrored_that_was_not_drawn_is_private_or_has_no_warm_candidate(world: World) -> None:
    gateway = Gateway(world)
    gateway.upstream.default = says({STABLE: "a", CANDIDATE: "a"})
    await gateway.serve(Client())
    await settled(gateway)
    assert len(gateway.upstream.calls) == 1
    assert gateway.compared == []
    assert gateway.demands == []


async def test_what_generates_nothing_is_not_mirrored() -> None:
    gateway = Gateway(shadowed_world())
    await gateway.serve(Client(), endpoint=EMBEDDINGS)
    await settled(gateway)
    assert len(gateway.upstream.calls) == 1


async def test_shadows_keep_to_their_budget() -> None:
    gateway = Gateway(shadowed_world(), shadows=Budget(most=8, of_node=0.1))
    gateway.upstream.default = says({STABLE: "a", CANDIDATE: "a"})
    gateway.upstream.takes_s = 0.02
    await asyncio.gather(*(gateway.serve(Client()) for _ in range(5)))
    await settled(gateway)
    assert len(gateway.compared) == 1
    assert gateway.joined.mirror.counts.left_out == 4


@pytest.mark.parametrize(("share", "left_out"), [(10_000, 3), (0, 0)])
async def test_what_is_drawn_while_the_budget_is_used_up_is_counted(share: int, left_out: int) -> None:
    gateway = Gateway(shadowed_world(), shadows=Budget(most=1, of_node=100))
    gateway.upstream.default = says({STABLE: "a", CANDIDATE: "a"})
    await gateway.serve(Client())
    gateway.upstream.takes_s = 60
    await asyncio.sleep(0)  # the shadow is on its way
    gateway.upstream.takes_s = 0
    gateway.current.publish(shadowed_world(share=share).snapshot())
    for _ in range(3):
        await gateway.serve(Client())
    await gateway.serve(Client(), endpoint=EMBEDDINGS)
    assert gateway.joined.mirror.counts.left_out == left_out
    await gateway.joined.mirror.close()


async def test_shadows_that_still_run_are_given_up_at_the_end() -> None:
    gateway = Gateway(shadowed_world())
    gateway.upstream.default = says({STABLE: "a", CANDIDATE: "a"})
    await gateway.serve(Client())
    gateway.upstream.takes_s = 60
    await asyncio.sleep(0.01)
    await asyncio.wait_for(gateway.joined.mirror.close(), 1)
    assert gateway.joined.fleet.in_flight == 0


async def test_of_an_answer_that_is_too_long_nothing_is_kept() -> None:
    tap = Tap(answer(b"a", b"x" * MOST_BYTES, b"b"))
    while await tap.read():
        pass
    assert tap.kept() is None
    assert not tap._kept
    short = Tap(answer(b"a", b"b"))
    assert await short.whole(10) == short.kept() == b"ab"


@pytest.mark.parametrize("status", [400, 404, 429, 503])
async def test_a_candidate_that_refuses_does_not_make_its_node_look_sick(status: int) -> None:
    gateway = Gateway(shadowed_world())
    reply = says({STABLE: "a"})
    refused = json.dumps({"error": {"message": "no", "param": "model"}}).encode()
    gateway.upstream.default = lambda call: (
        answer(refused, status=status) if CANDIDATE.encode() in call.body else reply(call)
    )
    for number in range(12):
        await gateway.serve(Client(), request_id=str(number))
        await settled(gateway)
    assert len(gateway.compared) == 12
    assert all(compared.error_kind and compared.agreement is None for compared in gateway.compared)
    assert gateway.joined.fleet.breaker_states() == {"n1": BreakerState.CLOSED}


@pytest.mark.parametrize("is_revoked", [True, False])
async def test_nothing_is_mirrored_to_what_was_revoked_or_for_who_opted_out_while_the_answer_came(
    is_revoked: bool,
) -> None:
    world = shadowed_world()
    gateway = Gateway(world)
    gateway.upstream.default = says({STABLE: "a", CANDIDATE: "a"})
    gateway.upstream.takes_s = 0.02
    asked = asyncio.create_task(gateway.serve(Client()))
    await asyncio.sleep(0.005)
    if is_revoked:
        gateway.current.revoke(V2)
    else:
        world.rules.append(("acme", None, None, None, None, [], False))
        gateway.current.publish(world.snapshot())
    await asked
    await settled(gateway)
    assert len(gateway.upstream.calls) == 1
