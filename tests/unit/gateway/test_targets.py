"""Sides of a canary, base models, fallbacks, limits and crowded nodes, through the whole path."""

import asyncio
import json

import pytest

from gateway.errors import (
    EngineFailed,
    EngineUnreachable,
    ModelNotFound,
    NodesDown,
    NoSlotInTime,
    NotLoaded,
    NotWarmInTime,
    RequestsExceeded,
    TooManyConcurrent,
)
from gateway.routing.resolve import bucket
from tests.unit.gateway.fakes import Client, answer
from tests.unit.gateway.paths import Gateway
from tests.unit.gateway.worlds import FOREIGN, V1, V2, World, acme_world, node_row, residency_row, shared_row

NAME_1, NAME_2 = "lk-support-tone-v1-acme", "lk-support-tone-v2-acme"
SALT = "salt"


def split_world(*, share: int = 5000, is_candidate_warm: bool = True) -> World:
    """`support` points to v1 and is split with v2, both loaded on n1."""
    world = acme_world()
    world.aliases[0] = ("acme", "support", V1, 1, V2, share, SALT, [], [], None, 0)
    if is_candidate_warm:
        world.residencies.append(residency_row("n1", world.versions[1]))
    return world


def cold_rule(on_cold: str, wait_s: float | None = None) -> tuple[object, ...]:
    return ("base", "", on_cold, wait_s, None)


def key_on(side: str) -> str:
    return next(key for key in map(str, range(100)) if (bucket(SALT, key) < 5000) is (side == "canary"))


@pytest.mark.parametrize(("side", "name"), [("canary", NAME_2), ("stable", NAME_1)])
async def test_a_session_is_answered_by_its_side_of_a_canary(side: str, name: str) -> None:
    gateway = Gateway(split_world())
    for _ in range(3):
        trace = await gateway.serve(Client(), headers={"x-lorekeeper-session": key_on(side)})
        assert trace.record(status=200, error_kind="").side == side
    assert {json.loads(call.body)["model"] for call in gateway.upstream.calls} == {name}


async def test_without_a_session_each_request_draws_anew() -> None:
    gateway = Gateway(split_world())
    sides = [(await gateway.serve(Client(), request_id=str(number))).side for number in range(50)]
    assert {sides.count("canary"), sides.count("stable")} == {
        sum(bucket(SALT, str(number)) < 5000 for number in range(50)),
        sum(bucket(SALT, str(number)) >= 5000 for number in range(50)),
    }


async def test_a_cold_candidate_is_answered_for_by_the_stable_version_and_asked_for() -> None:
    world = split_world(is_candidate_warm=False)
    world.cold_rules.append(cold_rule("stable"))
    gateway, client = Gateway(world), Client()
    trace = await gateway.serve(client, headers={"x-lorekeeper-session": key_on("canary")})
    await asyncio.sleep(0)
    assert gateway.demands == [V2]
    assert client.headers["x-lorekeeper-fallback"] == "stable"
    assert client.headers["x-lorekeeper-version"] == "acme/support-tone@v1"
    record = trace.record(status=200, error_kind="")
    assert (record.fallback, record.side, record.version_id, record.load_ms) == ("stable", "stable", V1, 0)


async def test_the_base_model_answers_for_a_cold_version_where_the_class_of_service_says_so() -> None:
    world = acme_world()
    world.residencies.clear()
    world.cold_rules.append(cold_rule("base"))
    gateway, client = Gateway(world), Client()
    trace = await gateway.serve(client)
    assert json.loads(gateway.upstream.calls[0].body)["model"] == "base"
    assert client.headers["x-lorekeeper-fallback"] == "base"
    assert (client.headers["x-lorekeeper-version"], client.headers["x-lorekeeper-tier"]) == ("base", "base")
    record = trace.record(status=200, error_kind="")
    assert (record.fallback, record.alias, record.version_id, record.tier) == ("base", "support", V1, "base")


async def test_a_request_that_must_not_wait_is_refused_and_its_version_asked_for() -> None:
    world = acme_world()
    world.residencies.clear()
    world.cold_rules.append(cold_rule("refuse"))
    gateway, client = Gateway(world, loads=True), Client()
    with pytest.raises(NotLoaded) as caught:
        await gateway.serve(client)
    assert caught.value.retry_after_s
    await asyncio.sleep(0.01)
    assert gateway.demands == [V1]
    await gateway.serve(client)
    assert client.status == 200


async def test_many_refused_requests_ask_once() -> None:
    world = acme_world()
    world.residencies.clear()
    world.cold_rules.append(cold_rule("refuse"))
    gateway = Gateway(world)
    for _ in range(50):
        with pytest.raises(NotLoaded):
            await gateway.serve(Client())
        await asyncio.sleep(0)
    assert gateway.demands == [V1]


async def test_with_nothing_to_fall_back_to_the_request_waits() -> None:
    world = acme_world()
    world.residencies.clear()
    world.cold_rules.append(cold_rule("stable"))
    gateway, client = Gateway(world, loads=True), Client()
    await gateway.serve(client)
    assert "x-lorekeeper-fallback" not in client.headers
    assert client.headers["x-lorekeeper-version"] == "acme/support-tone@v1"


async def test_the_wait_is_as_long_as_the_class_of_service_says() -> None:
    world = acme_world()
    world.residencies.clear()
    world.cold_rules.append(cold_rule("wait", 0.05))
    with pytest.raises(NotWarmInTime):
        await asyncio.wait_for(Gateway(world, cold_wait_s=30).serve(Client()), 1)


async def test_a_permitted_base_model_answers_by_its_own_name() -> None:
    world = acme_world()
    world.rules.append(("acme", None, None, None, None, ["base"], True))
    gateway, client = Gateway(world), Client()
    trace = await gateway.serve(client, "base")
    assert json.loads(gateway.upstream.calls[0].body)["model"] == "base"
    assert (client.headers["x-lorekeeper-version"], client.headers["x-lorekeeper-tier"]) == ("base", "base")
    assert (trace.alias, trace.version_id) == ("base", None)
    with pytest.raises(ModelNotFound):
        await Gateway(acme_world()).serve(client, "base")


async def test_a_base_model_whose_engines_cannot_be_reached_is_given_up() -> None:
    world = acme_world()
    world.rules.append(("acme", None, None, None, None, ["base"], True))
    world.nodes.append(node_row("n2"))
    gateway = Gateway(world)
    gateway.upstream.default = lambda _: EngineUnreachable("x")
    with pytest.raises((EngineUnreachable, NodesDown)):
        await gateway.serve(Client(), "base")
    assert len(gateway.upstream.calls) == 2


async def test_a_tenant_at_its_limit_is_refused_and_told_what_is_left() -> None:
    world = acme_world()
    world.rules.append(("acme", 100, None, 1, None, [], True))
    gateway, client = Gateway(world), Client()
    gateway.upstream.takes_s = 0.05
    first = asyncio.create_task(gateway.serve(client))
    await asyncio.sleep(0.01)
    with pytest.raises(TooManyConcurrent):
        await gateway.serve(Client())
    await first
    assert client.headers["x-ratelimit-limit-requests"] == "100"
    await gateway.serve(Client())


def crowded_world() -> World:
    """Node n1 has one slot, and two versions loaded: `support` (v1) and `other` (v2)."""
    world = acme_world()
    world.nodes[0] = (*world.nodes[0][:6], 1, "up")
    world.aliases.append(("acme", "other", V2, 1))
    world.residencies.append(residency_row("n1", world.versions[1]))
    return world


async def test_a_version_whose_node_has_its_slot_full_waits_for_it() -> None:
    gateway = Gateway(crowded_world(), cold_wait_s=5)
    gateway.upstream.takes_s = 0.05
    done: list[str] = []

    async def ask(model: str) -> None:
        await gateway.serve(Client(), model)
        done.append(model)

    first, second = asyncio.create_task(ask("support")), asyncio.create_task(ask("other"))
    await asyncio.sleep(0.01)
    assert len(gateway.upstream.calls) == 1
    assert len(gateway.joined.room) == 1
    await asyncio.wait_for(asyncio.gather(first, second), 0.3)
    assert done == ["support", "other"]
    assert len(gateway.joined.room) == 0


async def test_a_version_that_is_asked_for_all_the_time_does_not_keep_its_slot_for_ever() -> None:
    gateway = Gateway(crowded_world(), cold_wait_s=5)
    gateway.upstream.takes_s = 0.02
    stopped = False

    async def go_on() -> None:
        while not stopped:
            await gateway.serve(Client(), "support")

    busy = [asyncio.create_task(go_on()) for _ in range(3)]
    await asyncio.sleep(0.01)
    await asyncio.wait_for(gateway.serve(Client(), "other"), 2)
    stopped = True
    await asyncio.gather(*busy)


async def test_a_slot_that_never_becomes_free_ends_the_wait() -> None:
    gateway = Gateway(crowded_world(), cold_wait_s=0.1)
    gateway.upstream.takes_s = 0.5
    first = asyncio.create_task(gateway.serve(Client(), "support"))
    await asyncio.sleep(0.01)
    with pytest.raises(NoSlotInTime):
        await gateway.serve(Client(), "other")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert gateway.joined.fleet.in_flight == 0


async def test_a_version_that_waits_for_a_slot_keeps_no_request_for_the_base_model_out() -> None:
    world = crowded_world()
    world.rules.append(("acme", None, None, None, None, ["base"], True))
    gateway, client = Gateway(world, cold_wait_s=5), Client()
    gateway.upstream.takes_s = 0.9
    requests = [asyncio.create_task(gateway.serve(Client(), model)) for model in ("support", "other")]
    async with asyncio.timeout(2):
        while not gateway.path._targets._crowd.has_claims:  # noqa: ASYNC110  a claim tells nobody
            await asyncio.sleep(0.01)
    gateway.upstream.takes_s = 0
    await gateway.serve(client, "base")
    assert client.status == 200
    await asyncio.gather(*requests)


async def test_a_base_model_that_stands_in_is_asked_of_another_node_when_one_fails() -> None:
    world = acme_world()
    world.residencies.clear()
    world.nodes = [node_row(name, url=f"http://{name}.invalid") for name in ("n1", "n2")]
    world.cold_rules.append(cold_rule("base"))
    for number in range(20):
        gateway, client = Gateway(world), Client()
        gateway.upstream.script = [EngineFailed("x")]
        await gateway.serve(client, request_id=str(number))
        assert client.status == 200
        assert {call.engine_url for call in gateway.upstream.calls} == {"http://n1.invalid", "http://n2.invalid"}
        assert (client.headers["x-lorekeeper-fallback"], client.headers["x-lorekeeper-tier"]) == ("base", "base")


async def test_what_never_reached_an_engine_or_was_refused_there_takes_no_tokens() -> None:
    world = acme_world()
    world.rules.append(("acme", None, 1000, None, None, [], True))
    gateway, client = Gateway(world), Client()
    for _ in range(10):
        with pytest.raises(ModelNotFound):
            await gateway.serve(Client(), "no-such-alias")
    gateway.upstream.script = [answer(b'{"message": "too long"}', status=400) for _ in range(10)]
    for _ in range(10):
        await gateway.serve(Client())
    await gateway.serve(client)
    assert int(client.headers["x-ratelimit-remaining-tokens"]) > 800


def shared_world() -> World:
    """Acme may call the alias `secret` of another tenant as `ours`."""
    world = acme_world()
    world.aliases.append(shared_row("ours"))
    world.residencies.append(residency_row("n1", world.versions[2]))
    return world


async def test_a_request_for_a_shared_alias_is_the_callers_and_names_no_owner() -> None:
    gateway, client = Gateway(shared_world()), Client()
    trace = await gateway.serve(client, "ours")
    assert json.loads(gateway.upstream.calls[0].body)["model"] == "lk-support-tone-v1-other"
    assert client.headers["x-lorekeeper-version"] == "support-tone@v1"
    assert (client.headers["x-lorekeeper-tier"], client.headers["x-lorekeeper-node"]) == ("gpu", "n1")
    record = trace.record(status=200, error_kind="")
    assert (record.tenant, record.alias, record.version_id) == ("acme", "ours", FOREIGN)


async def test_a_cold_shared_version_names_no_owner_either() -> None:
    world = shared_world()
    world.residencies.pop()
    world.cold_rules.append(cold_rule("wait", 0.05))
    gateway, client = Gateway(world), Client()
    with pytest.raises(NotWarmInTime):
        await gateway.serve(client, "ours")
    assert gateway.demands == [FOREIGN]
    assert "other" not in repr(client.headers)


async def test_the_callers_own_limits_count_its_requests_for_a_shared_alias() -> None:
    world = shared_world()
    world.rules.append(("acme", 1, None, None, None, [], True))
    gateway = Gateway(world)
    await gateway.serve(Client(), "ours")
    with pytest.raises(RequestsExceeded):
        await gateway.serve(Client(), "support")


async def test_a_request_that_waits_ends_when_its_grant_does() -> None:
    world = shared_world()
    world.residencies.pop()
    gateway = Gateway(world, cold_wait_s=20)
    waiting = asyncio.create_task(gateway.serve(Client(), "ours"))
    await asyncio.sleep(0.02)
    world.aliases.pop()
    gateway.current.publish(world.snapshot())
    with pytest.raises(ModelNotFound):
        await asyncio.wait_for(waiting, 5)
