"""A gateway while aliases move and lose their version under load, and while all that it hears of them from is away."""

import json
import math
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
import pytest

from client.refs import PairRef, VersionRef
from client.sdk import LorekeeperClient
from deploy.embedded.stack import Stack
from gateway.routing.resolve import Route, resolve
from gateway.routing.snapshot import RoutingSnapshot
from tests.e2e.journey import ADAPTER, ALIAS, TENANT, Journey, wait_until
from tests.e2e.load import Answer, Heard, Plan, loaded
from tests.e2e.outage import HOUR_S, SLACK_S, Hour, TimedGateway, all_stopped, kept_records, kept_routes, timed_gateway
from tests.e2e.routes import commits_heard, execute, routing_data
from tests.factories.adapters import adapter_files
from tests.factories.base_folders import write_adapter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
CONNECTIONS = 64
WITHIN_S = 0.1
CALM_S = 1.0
WARM, COLD = ("one", "two", "three"), "four"
KEYS = tuple(f"session-{number}" for number in range(20_000))
ASKED_KEYS = KEYS[:200]


@pytest.fixture(scope="module")
def versions(journey: Journey, http: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """All but one loaded, with aliases of their own names; their engine names by what the gateway calls them."""
    folder = tmp_path_factory.mktemp("adapters")
    for number, name in enumerate((*WARM, COLD)):
        journey.push(write_adapter(folder / name, adapter_files(seed=500 + number)), name)
        journey.approve(name)
    for name in WARM:
        journey.warm(name)
        point(journey, http, name, name)
    return {label(name): str(journey.show(name).engine_name) for name in (*WARM, COLD)}


def label(name: str) -> str:
    return f"{TENANT}/{ADAPTER}@{name}"


@pytest.fixture(scope="module")
def http(journey: Journey) -> Iterator[httpx.Client]:
    """An application of the tenant's."""
    headers = {"Authorization": f"Bearer {journey.application_token}"}
    with httpx.Client(base_url=journey.stack.urls["gateway"], headers=headers, trust_env=False) as client:
        yield client


def point(journey: Journey, http: httpx.Client, alias: str, name: str) -> None:
    journey.clients["rui"].aliases.set(PairRef(TENANT, alias), VersionRef(TENANT, ADAPTER, name))
    wait_until(lambda: answers_as(http, alias, name), f"{alias} answers as {name}")


def answers_as(http: httpx.Client, alias: str, name: str, *, session: str = "") -> bool:
    body = {"model": alias, "prompt": "Where is my order?", "max_tokens": 4}
    answer = http.post("/v1/completions", json=body, headers={"x-lorekeeper-session": session} if session else {})
    return answer.status_code == httpx.codes.OK and answer.headers["x-lorekeeper-version"] == label(name)


def load_of(journey: Journey, alias: str, *, connections: int = CONNECTIONS) -> Plan:
    return Plan(journey.stack.urls["gateway"], journey.application_token, alias, connections)


def check_served_exactly(answers: list[Answer], name: str, versions: Mapping[str, str]) -> None:
    """Each by that version: so says the gateway, and the engine was asked for no other."""
    assert answers
    check_served_by(answers, (name,), versions)


def check_served_by(answers: list[Answer], names: Collection[str], versions: Mapping[str, str]) -> None:
    """Each by one of these versions, whichever the gateway says."""
    allowed = {(label(name), versions[label(name)]) for name in names}
    wrong = [each for each in answers if (each.version, each.model) not in allowed]
    assert not wrong, wrong[:3]


def check_change(
    what: str, heard: Heard, commit: float, end: float, names: tuple[str, str, str], versions: Mapping[str, str]
) -> None:
    """Of the requests that began between the commit and the end: the first may be answered by the old version.

    `names` are of the old version, the new one, and that of the next change, at the end: what was under way then is
    answered by one of the last two.
    """
    old, new, then = names
    while_new = Heard([each for each in heard.answers if each.began < end])
    tell(what, while_new, commit, old)
    after = while_new.begun_after(commit + WITHIN_S)
    check_served_by([each for each in after if each.ended >= end], (new, then), versions)
    check_served_exactly([each for each in after if each.ended < end], new, versions)
    first = [each for each in while_new.begun_after(commit) if each.ended < end]
    check_served_by(first, (old, new), versions)


def tell(what: str, heard: Heard, commit: float, old: str) -> None:
    """Print how long the change took to be seen, from its commit on."""
    took = [each for each in heard.answers if each.began > commit]
    late = max((each.began - commit for each in took if each.version == label(old) and each.status == 200), default=0)
    first = min(each.ended - commit for each in took if each.version != label(old) or each.status != 200)
    rate = len(heard.answers) / (heard.answers[-1].ended - heard.answers[0].ended)
    print(
        f"{what}: the last request that the old version answered began {late * 1000:.0f} ms after the commit, the first"
        f" answer that knew of it came after {first * 1000:.0f} ms; {rate:.0f} requests/s"
    )


def test_a_moved_and_a_rolled_back_alias_fail_no_request_and_answer_by_the_old_version_for_100_ms_at_most(
    fake_stack: Stack, journey: Journey, http: httpx.Client, versions: Mapping[str, str]
) -> None:
    point(journey, http, ALIAS, "one")
    rui = journey.clients["rui"]
    two, cold = VersionRef(TENANT, ADAPTER, "two"), VersionRef(TENANT, ADAPTER, COLD)
    with commits_heard(fake_stack) as commits, loaded(load_of(journey, ALIAS)) as heard:
        time.sleep(CALM_S)
        moved = commits.moment_of(lambda: rui.aliases.set(PairRef(TENANT, ALIAS), two), "aliases")
        time.sleep(CALM_S)
        back = commits.moment_of(journey.roll_back, "aliases")
        time.sleep(CALM_S)
        away = commits.moment_of(lambda: rui.aliases.set(PairRef(TENANT, ALIAS), cold), "aliases")
        wait_until(lambda: answers_as(http, ALIAS, COLD), "the version that was nowhere answers")
        time.sleep(CALM_S)
    assert not heard.failed, heard.failed[:3]
    check_served_exactly([each for each in heard.answers if each.ended < moved], "one", versions)
    check_change("move", heard, moved, back, ("one", "two", "one"), versions)
    check_change("rollback", heard, back, away, ("two", "one", COLD), versions)
    check_change("move to a version that had to be loaded", heard, away, math.inf, ("one", COLD, COLD), versions)


def test_a_revoked_version_answers_nothing_that_began_100_ms_later_and_refusals_say_why(
    fake_stack: Stack, journey: Journey, versions: Mapping[str, str]
) -> None:
    rui = journey.clients["rui"]
    with commits_heard(fake_stack) as commits, loaded(load_of(journey, "three")) as heard:
        time.sleep(CALM_S)
        revoked = commits.moment_of(
            lambda: rui.versions.revoke(VersionRef(TENANT, ADAPTER, "three"), reason="found bad"), "revoked:"
        )
        time.sleep(CALM_S)
    tell("revocation", heard, revoked, "three")
    check_served_exactly([each for each in heard.answers if each.ended < revoked], "three", versions)
    assert {(each.status, each.code) for each in heard.failed} == {(403, "version_revoked")}
    assert all(each.status == 403 for each in heard.begun_after(revoked + WITHIN_S))


@pytest.fixture
def split(fake_stack: Stack, journey: Journey, http: httpx.Client, versions: Mapping[str, str]) -> Iterator[str]:
    """An alias at version one, to be split with two; always by the same salt, so that its keys are the same ones."""
    point(journey, http, "split", "one")
    give_to_two(journey, 0)
    execute(fake_stack, "UPDATE releases_aliassplit SET salt = 'of this test'")
    yield "split"
    journey.clients["rui"].aliases.unsplit(PairRef(TENANT, "split"))


def give_to_two(journey: Journey, basis_points: int) -> None:
    two = VersionRef(TENANT, ADAPTER, "two")
    journey.clients["rui"].aliases.split(PairRef(TENANT, "split"), two, basis_points=basis_points)


def keys_of_two(snapshot: RoutingSnapshot) -> set[str]:
    """By the gateway's own decision."""
    routes = {key: resolve(snapshot, tenant=TENANT, model="split", key=key) for key in KEYS}
    return {key for key, route in routes.items() if isinstance(route, Route) and route.version.name == "two"}


def test_a_split_takes_its_share_of_the_keys_and_keeps_them_at_each_later_step(
    fake_stack: Stack, journey: Journey, http: httpx.Client, split: str
) -> None:
    before: set[str] = set()
    for basis_points in (500, 2500, 10_000):
        give_to_two(journey, basis_points)
        keys = keys_of_two(routing_data(fake_stack))
        share = len(keys) / len(KEYS)
        print(f"a split of {basis_points / 100:g} % takes {share:.2%} of {len(KEYS)} keys")
        assert share == pytest.approx(basis_points / 10_000, abs=0.005)
        assert before < keys
        newest = min(keys - before)
        wait_until(partial(answers_as, http, split, "two", session=newest), "the gateway has heard of it")
        asked = {key for key in ASKED_KEYS if answers_as(http, split, "two", session=key)}
        assert asked == keys & set(ASKED_KEYS)
        before = keys


@pytest.fixture
def brief_key(fake_stack: Stack) -> str:
    """An API key that expires in the middle of the hour."""
    tokens = json.loads(fake_stack.facts.secrets.bootstrap.read_text())
    with LorekeeperClient(fake_stack.urls["web"], tokens["admin_token"]) as admin:
        made = admin.tenants.create_token(TENANT, name="brief", kind="application", scopes=["infer"])
    halfway = "UPDATE registry_apitoken SET expires_at = now() + make_interval(secs => %s) WHERE name = 'brief'"
    execute(fake_stack, halfway, HOUR_S / 2)
    return str(made.token)


def test_an_hour_without_postgres_valkey_web_and_workers_is_served_and_recorded_once(
    fake_stack: Stack,
    journey: Journey,
    http: httpx.Client,
    versions: Mapping[str, str],
    brief_key: str,
    stack_folder: Path,
) -> None:
    """For a gateway beside the stack's own that hour passes in jumps; the own one is asked meanwhile, too."""
    point(journey, http, "one", "one")
    point(journey, http, "two", "two")
    folder = stack_folder / "in-time"
    with timed_gateway(fake_stack, folder) as gateway, ExitStack() as outage:
        wait_until(lambda: brief_key.split("_")[1] in kept_routes(folder), "the routing data is kept on disk")
        hour = Hour(fake_stack, gateway, usual=http, brief_key=brief_key)
        outage.enter_context(all_stopped(fake_stack))
        hour.pass_by()
        wait_until(lambda: gateway.readiness()["records_pending"] == 0, "all records are on disk")
        check_serves_old_data(gateway, source="database")
        gateway.kill()
        with timed_gateway(fake_stack, folder, ahead_s=HOUR_S) as started:
            hour.ask(started, at_s=HOUR_S)
            check_serves_old_data(started, source="disk")
            wait_until(lambda: started.readiness()["records_pending"] == 0, "all records are on disk")
        assert kept_records(folder)
        with loaded(load_of(journey, "one", connections=1)) as heard:
            outage.close()
            wait_until(lambda: journey.clients["olga"].nodes.get(journey.node).status == "up", "the node is back")
    assert hour.surprises == []
    check_served_exactly(heard.answers, "one", versions)
    with timed_gateway(fake_stack, folder, ahead_s=HOUR_S) as back:
        wait_until(lambda: back.readiness()["source"] == "database", "the database is read again")
        wait_until(lambda: not kept_records(folder), "all that was kept is sent")
        wait_until(lambda: hour.ids <= set(recorded(fake_stack, hour.ids)), "all records have arrived", seconds=15)
    assert sorted(recorded(fake_stack, hour.ids)) == sorted(hour.ids)
    print(f"an hour without a control plane: {len(hour.ids)} requests as they should be, each recorded once")
    point(journey, http, "two", "one")


def check_serves_old_data(gateway: TimedGateway, *, source: str) -> None:
    said = gateway.readiness()
    assert (said["ready"], said["source"]) == (True, source)
    assert HOUR_S <= float(str(said["snapshot_age_s"])) < HOUR_S + SLACK_S


def recorded(stack: Stack, request_ids: Collection[str]) -> list[str]:
    """The ids of those that are in the database, as often as they are there."""
    rows = execute(stack, "SELECT request_id FROM gateway_request WHERE request_id = ANY(%s)", list(request_ids))
    return [str(request_id) for (request_id,) in rows]
