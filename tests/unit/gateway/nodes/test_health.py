import asyncio

from gateway.errors import EngineUnreachable, GatewayBusy, GatewayError
from gateway.limits import TenantLimits
from gateway.nodes.fleet import Fleet
from gateway.nodes.health import HealthChecks, Pulse
from gateway.routing.breaker import MISSED_CHECKS, BreakerState
from gateway.routing.current import CurrentSnapshot
from gateway.upstream.ports import EngineCall
from tests.unit.gateway.fakes import FakeAnswer, FakeUpstream, answer
from tests.unit.gateway.worlds import V1, acme_world, node_row


def checks(upstream: FakeUpstream, fleet: Fleet, *, every_s: float = 60, timeout_s: float = 1) -> HealthChecks:
    world, current = acme_world(), CurrentSnapshot()
    world.nodes = [node_row("n1", url="http://n1.invalid"), node_row("n2", url="http://n2.invalid")]
    current.publish(world.snapshot())
    return HealthChecks(
        current=current,
        fleet=fleet,
        limits=TenantLimits(),
        upstream=upstream,
        pulse=Pulse(every_s=every_s, timeout_s=timeout_s),
    )


async def rounds(found: HealthChecks, number: int = MISSED_CHECKS) -> None:
    nodes = acme_world().snapshot().nodes.values()
    for _ in range(number):
        await found.check(nodes)


def state(fleet: Fleet) -> BreakerState:
    return fleet.breaker_states()["n1"]


def test_every_engine_is_asked_for_its_health() -> None:
    upstream = FakeUpstream(lambda _: answer())
    asyncio.run(rounds(checks(upstream, Fleet()), 1))
    (call,) = upstream.calls
    assert (call.method, call.path, call.body) == ("GET", "/health", b"")
    assert upstream.open_now == 0


def test_an_engine_that_says_it_is_well_is_left_in() -> None:
    fleet = Fleet()
    asyncio.run(rounds(checks(FakeUpstream(lambda _: answer()), fleet)))
    assert state(fleet) is BreakerState.CLOSED


def test_an_engine_that_is_unwell_or_unreachable_or_silent_is_down_after_some_rounds() -> None:
    def unreachable(_: EngineCall) -> GatewayError:
        return EngineUnreachable("gone")

    for upstream in (
        FakeUpstream(lambda _: answer(status=503)),
        FakeUpstream(unreachable),
        FakeUpstream(lambda _: answer(), takes_s=60),
    ):
        fleet = Fleet()
        asyncio.run(rounds(checks(upstream, fleet, timeout_s=0.001)))
        assert state(fleet) is BreakerState.DOWN


def test_a_gateway_without_a_free_connection_blames_no_engine() -> None:
    def busy(_: EngineCall) -> GatewayError:
        return GatewayBusy("none free")

    fleet = Fleet()
    asyncio.run(rounds(checks(FakeUpstream(busy), fleet)))
    assert fleet.breaker_states() == {}


def test_the_rounds_go_over_the_nodes_of_the_snapshot_and_forget_others() -> None:
    asked: list[str] = []
    fleet = Fleet()
    fleet.give_up(fleet.enter("gone", V1))

    async def run_until_the_second_round() -> None:
        second = asyncio.Event()

        def note(call: EngineCall) -> FakeAnswer:
            asked.append(call.engine_url)
            if len(asked) > 2:
                second.set()
            return answer()

        task = asyncio.create_task(checks(FakeUpstream(note), fleet, every_s=0.001).run())
        async with asyncio.timeout(5):
            await second.wait()
        task.cancel()

    asyncio.run(run_until_the_second_round())
    assert asked[:2] == ["http://n1.invalid", "http://n2.invalid"]
    assert set(fleet.states) == {"n1", "n2"}
