"""Second calls: when they are made, which of the two answers, and what becomes of the other."""

import asyncio
import json
from dataclasses import dataclass, field

import pytest

from gateway.errors import EngineFailed, EngineUnreachable, GatewayError
from gateway.path.hedging import Hedging
from gateway.upstream.ports import EngineAnswer, EngineCall
from tests.unit.gateway.fakes import SSE_MEDIA, Client, FakeAnswer, answer, said_by
from tests.unit.gateway.paths import Gateway
from tests.unit.gateway.worlds import World, acme_world, node_row, residency_row

AFTER = 0.02
EVENTS = [b'data: {"model": "lk-support-tone-v1-acme", "choices": []}\n\n', b"data: [DONE]\n\n"]


def nodes(count: int = 2) -> World:
    """The version is loaded on n1, n2 …, each at an address of its own."""
    world = acme_world()
    world.nodes[0] = node_row("n1", url="http://n1")
    for number in range(2, count + 1):
        world.nodes.append(node_row(f"n{number}", url=f"http://n{number}"))
        world.residencies.append(residency_row(f"n{number}", world.versions[0]))
    return world


@dataclass
class Turn:
    """What becomes of one call: after some time its answer begins, a right one unless another or an error is named."""

    takes_s: float = 0.0
    outcome: FakeAnswer | GatewayError | None = None


SLOW = Turn(takes_s=30.0)


@dataclass
class Engines:
    """The first call, whichever node it goes to, takes the first turn, and so on; what comes after them is answered."""

    turns: list[Turn]
    asked: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    answers: list[FakeAnswer] = field(default_factory=list)

    async def send(self, call: EngineCall) -> EngineAnswer:
        node = call.engine_url.removeprefix("http://")
        self.asked.append(node)
        turn = self.turns.pop(0) if self.turns else Turn()
        try:
            await asyncio.sleep(turn.takes_s)
        except asyncio.CancelledError:
            self.cancelled.append(node)
            raise
        if isinstance(turn.outcome, GatewayError):
            raise turn.outcome
        made = turn.outcome or said_by(json.loads(call.body)["model"])
        self.answers.append(made)
        return made


def make(
    *turns: Turn, world: World | None = None, after_s: float | None = AFTER, share: float = 1.0
) -> tuple[Gateway, Engines]:
    engines = Engines(list(turns))
    return Gateway(world or nodes(), hedging=Hedging(after_s=after_s, share=share), upstream=engines), engines


def counts(gateway: Gateway) -> tuple[object, object]:
    facts = gateway.joined.facts()
    return facts["hedges"], facts["hedges_won"]


async def test_who_begins_first_answers_and_the_slow_one_is_told_to_stop() -> None:
    gateway, engines = make(SLOW)
    client = Client()
    trace = await gateway.serve(client)
    await asyncio.sleep(0)
    slow, fast = engines.asked
    assert slow != fast
    assert (client.status, client.headers["x-lorekeeper-node"], trace.node) == (200, fast, fast)
    assert engines.cancelled == [slow]
    assert counts(gateway) == (1, 1)
    assert gateway.joined.fleet.in_flight == 0
    record = trace.record(status=200, error_kind="")
    assert (record.retries, record.node) == (0, fast)
    assert record.engine_ms >= AFTER * 1000, "the time in the first one's engine counts"


async def test_a_second_call_that_is_slower_is_given_up() -> None:
    gateway, engines = make(Turn(AFTER * 3), SLOW)
    client = Client()
    await gateway.serve(client)
    await asyncio.sleep(0)
    first, second = engines.asked
    assert client.headers["x-lorekeeper-node"] == first
    assert engines.cancelled == [second]
    assert counts(gateway) == (1, 0)
    assert gateway.joined.fleet.in_flight == 0


async def test_an_answer_that_came_together_with_the_winners_is_closed() -> None:
    gateway, engines = make(Turn(AFTER * 3), Turn(AFTER * 2))
    await gateway.serve(Client())
    await asyncio.sleep(AFTER * 2)
    assert all(made.closed for made in engines.answers)
    assert gateway.joined.fleet.in_flight == 0


async def test_what_begins_soon_enough_is_asked_for_once() -> None:
    gateway, engines = make(Turn(AFTER), after_s=AFTER * 20)
    await gateway.serve(Client())
    assert len(engines.asked) == 1


async def test_what_no_other_node_has_is_asked_for_once() -> None:
    gateway, engines = make(Turn(AFTER * 3), world=nodes(1))
    await gateway.serve(Client())
    assert engines.asked == ["n1"]
    assert counts(gateway) == (0, 0)


async def test_a_node_whose_engine_fails_is_not_the_second_one() -> None:
    gateway, engines = make(Turn(AFTER * 3))
    for name in ("n1", "n2"):
        gateway.joined.fleet.states[name].breaker.checked(0.0, healthy=True)
    for _check in range(3):
        gateway.joined.fleet.checked("n2", healthy=False)
    await gateway.serve(Client())
    assert engines.asked == ["n1"]


async def test_off_means_that_there_is_no_second_call_and_no_figure() -> None:
    gateway = Gateway(nodes())
    await gateway.serve(Client())
    assert gateway.joined.hedges is None
    assert "hedges" not in gateway.joined.facts()


@pytest.mark.parametrize("outcome", [EngineFailed("it broke"), answer(b"{}", status=503)])
async def test_a_second_call_that_fails_leaves_the_first_alone(outcome: FakeAnswer | GatewayError) -> None:
    gateway, engines = make(Turn(AFTER * 4), Turn(outcome=outcome))
    client = Client()
    await gateway.serve(client)
    assert (client.status, client.headers["x-lorekeeper-node"]) == (200, engines.asked[0])
    assert all(made.closed for made in engines.answers)
    assert gateway.joined.fleet.in_flight == 0


@pytest.mark.parametrize("outcome", [EngineFailed("it broke"), answer(b"{}", status=500)])
async def test_a_first_call_that_fails_while_the_second_is_on_its_way_is_no_failed_request(
    outcome: FakeAnswer | GatewayError,
) -> None:
    gateway, engines = make(Turn(AFTER * 2, outcome), Turn(AFTER * 4))
    client = Client()
    trace = await gateway.serve(client)
    assert (client.status, trace.node, trace.retries) == (200, engines.asked[1], 0)
    assert counts(gateway) == (1, 1)
    assert gateway.joined.fleet.in_flight == 0


async def test_where_both_fail_it_is_the_first_ones_failure() -> None:
    gateway, _engines = make(Turn(AFTER * 3, EngineFailed("the first")), Turn(AFTER, EngineUnreachable("the second")))
    gateway.path._budget._left = 0
    with pytest.raises(EngineFailed, match="the first"):
        await gateway.serve(Client())
    assert gateway.joined.fleet.in_flight == 0


async def test_a_request_that_is_tried_again_is_not_asked_of_a_third_node_as_well() -> None:
    gateway, engines = make(Turn(outcome=EngineUnreachable("no connection")), Turn(AFTER * 3), world=nodes(3))
    await gateway.serve(Client())
    assert len(engines.asked) == 2
    assert counts(gateway) == (0, 0)


async def test_a_client_that_leaves_takes_both_calls_with_it() -> None:
    gateway, engines = make(SLOW, SLOW)
    serving = asyncio.create_task(gateway.serve(Client()))
    await asyncio.sleep(AFTER * 5)
    assert len(engines.asked) == 2
    serving.cancel()
    await asyncio.wait({serving})
    await asyncio.sleep(0)
    assert sorted(engines.cancelled) == ["n1", "n2"]
    assert gateway.joined.fleet.in_flight == 0


async def test_only_a_share_of_the_requests_is_asked_twice() -> None:
    gateway, engines = make(*[Turn(AFTER * 2)] * 10, share=0.25)
    for _request in range(8):
        await gateway.serve(Client())
    assert counts(gateway)[0] == 2
    assert len(engines.asked) == 10


async def test_a_stream_that_has_begun_is_not_asked_for_again() -> None:
    class Slowly(FakeAnswer):
        async def read(self) -> bytes:
            part = await super().read()
            await asyncio.sleep(AFTER * 2)
            return part

    gateway, engines = make(Turn(outcome=Slowly(200, SSE_MEDIA, list(EVENTS))))
    client = Client()
    await gateway.serve(client, stream=True)
    assert client.complete
    assert len(engines.asked) == 1


async def test_a_stream_that_takes_long_to_begin_is_answered_by_another_node_from_its_first_byte() -> None:
    gateway, engines = make(SLOW, Turn(outcome=FakeAnswer(200, SSE_MEDIA, list(EVENTS))))
    client = Client()
    await gateway.serve(client, stream=True)
    assert client.body == b"".join(EVENTS)
    assert client.headers["x-lorekeeper-node"] == engines.asked[1]


async def test_a_percentile_asks_again_only_once_it_is_known_what_is_usual() -> None:
    gateway, engines = make(after_s=None)
    for _request in range(60):
        await gateway.serve(Client())
    assert counts(gateway) == (0, 0)
    engines.asked.clear()
    engines.turns.append(SLOW)
    client = Client()
    await gateway.serve(client)
    assert counts(gateway) == (1, 1)
    assert client.headers["x-lorekeeper-node"] == engines.asked[1]
