"""From whatever a client sends to the one name that an engine is asked for, against plain readings of the rows.

The rows are as wrong as rows can be: aliases of foreign versions, residencies under other names, engines that can't
fit. What is in force is the last snapshot that was published, whatever happened to the rows since.
"""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gateway.errors import (
    BadJson,
    GatewayError,
    MissingModel,
    ModelNotFound,
    NotAuthenticated,
    NotReady,
    TokenExpired,
    VersionRevoked,
    VersionUnavailable,
)
from gateway.nodes.fleet import NodeStates
from gateway.path.calls import engine_call
from gateway.path.targets import Ask
from gateway.routing.absences import Absences
from gateway.routing.authenticate import authenticate
from gateway.routing.choose import Miss, Wish, candidates, choose
from gateway.routing.current import CurrentSnapshot
from gateway.routing.resolve import Route, resolve
from gateway.routing.snapshot import Row
from gateway.surface.endpoints import COMPLETIONS
from gateway.wire.body import parse_json_object
from tests.unit.gateway.worlds import BASE, NOW, World, digest, token_row

TENANTS = ("acme", "other")
NAMES = ("support", "sales", "acme", "lk-tone-v1-acme", "v1")
VERSIONS = tuple(UUID(int=number) for number in range(1, 6))
NODES = ("n1", "n2", "n3")
OTHER_BASE = "c" * 64
KEYS = tuple(f"lk_{number:012x}_" + letter * 43 for number, letter in enumerate("abcd"))
SERVED = {"approved", "yanked"}
GPU_SLOTS = 4
OWN_COLUMNS = 4
# What each kind of engine has to be asked for in place of the client's model, by its engine name.
ASKED: dict[str, Callable[[str], dict[str, str]]] = {
    "vllm": lambda name: {"model": name},
    "sglang": lambda name: {"model": f"base:{name}"},
    "tgi": lambda name: {"model": name},
    "lorax": lambda name: {"model": name, "adapter_source": "local"},
}

tenants, names, versions, nodes = (st.sampled_from(each) for each in (TENANTS, NAMES, VERSIONS, NODES))


def engine_name(version_id: UUID) -> str:
    return f"lk-tone-v{version_id.int}-acme"


# Names that exist, in and out of place, and everything else that a client may think of.
models = st.one_of(
    names,
    st.builds("{}/{}".format, tenants, names),
    st.builds("{}/{}".format, st.text(max_size=3), names),
    st.builds(engine_name, versions),
    st.sampled_from(["", "/", "acme/", "/support", "../acme/support", "acme/support/", "support\n", "SUPPORT", "base"]),
    st.sampled_from(
        ["ｓupport", "support\u0000", "s" * 64, "acme//support", "./support", "/etc/passwd", "sup\u0131ort"]
    ),
    st.text(max_size=130),
)
anything = st.one_of(models, st.none(), st.booleans(), st.integers(), st.lists(names, max_size=2), st.just({"a": "b"}))


class Machine(NamedTuple):
    """What a node's row says: the kind of its engine, and whether it's up."""

    kind: str
    status: str


class Routing(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rows = World()
        self.seen: World | None = None
        self.current = CurrentSnapshot()
        with pytest.raises(NotReady):
            self.current.get()
        self.time = 0.0
        self.absences = Absences(lasts_s=2.0, clock=lambda: self.time)
        self.states = NodeStates()
        self.draws = 0
        self.marked: dict[tuple[str, UUID], tuple[Row, float]] = {}

    # --- what the control plane writes

    @initialize(versions=st.permutations(VERSIONS))
    def much_is_loaded(self, versions: list[UUID]) -> None:
        for number, version in enumerate(VERSIONS):
            self.write_a_version(version, TENANTS[number % 2], "approved", 8)
            for node in NODES[: 1 + number % 3]:
                self.write_a_residency(node, version, None, "loaded", 1)
        self.write_a_residency(NODES[-1], VERSIONS[0], VERSIONS[1], "loaded", 1)
        for node in NODES:
            self.write_a_node(node, "up", "vllm", BASE, 16)
        for number, name in enumerate(NAMES):
            self.move_an_alias(TENANTS[number % 2], name, versions[number])
        for key, tenant, days in zip(KEYS, TENANTS * 2, [None, 1, -1, None], strict=True):
            self.write_a_token(key, tenant, days)
        self.publish()

    @rule(tenant=tenants, name=names, version=versions)
    def move_an_alias(self, tenant: str, name: str, version: UUID) -> None:
        revision = 1 + max((row[3] for row in self.rows.aliases if row[:2] == (tenant, name)), default=0)
        put(self.rows.aliases, (tenant, name, version, revision), key=2)

    @rule(tenant=tenants, name=names, version=versions)
    def grant_an_alias(self, tenant: str, name: str, version: UUID) -> None:
        (owner,) = set(TENANTS) - {tenant}
        put(self.rows.aliases, (tenant, name, version, 1, *(None,) * 7, owner), key=2)

    @rule(tenant=tenants, name=names)
    def end_a_grant(self, tenant: str, name: str) -> None:
        self.rows.aliases[:] = [
            row for row in self.rows.aliases if row[:2] != (tenant, name) or owner_of(row) == tenant
        ]

    @rule(
        version=versions,
        tenant=st.sampled_from([*TENANTS[:1] * 3, TENANTS[1]]),
        state=st.sampled_from(["approved", "approved", "yanked", "revoked"]),
        rank=st.sampled_from([8, 64]),
    )
    def write_a_version(self, version: UUID, tenant: str, state: str, rank: int) -> None:
        name = f"v{version.int}"
        put(self.rows.versions, (version, tenant, "tone", name, engine_name(version), BASE, rank, state))

    @rule(version=versions)
    def lose_a_version(self, version: UUID) -> None:
        self.rows.versions = [row for row in self.rows.versions if row[0] != version]

    @rule(
        node=nodes,
        status=st.sampled_from(["up", "up", "lost"]),
        kind=st.sampled_from([*ASKED, "another"]),
        base=st.sampled_from([BASE, BASE, BASE, OTHER_BASE]),
        max_rank=st.sampled_from([16, 64]),
    )
    def write_a_node(self, node: str, status: str, kind: str, base: str, max_rank: int) -> None:
        put(self.rows.nodes, (node, kind, f"http://{node}.invalid", base, "base", max_rank, GPU_SLOTS, status))

    @rule(
        node=nodes,
        version=versions,
        named_as=st.one_of(st.none(), st.none(), st.none(), versions),
        observed=st.sampled_from(["loaded", "loaded", "loaded", "loading", "draining"]),
        generation=st.integers(1, 9),
    )
    def write_a_residency(
        self, node: str, version: UUID, named_as: UUID | None, observed: str, generation: int
    ) -> None:
        row = (node, version, engine_name(named_as or version), observed, generation)
        put(self.rows.residencies, row, key=2)

    @rule(key=st.sampled_from(KEYS), tenant=tenants, days=st.sampled_from([None, 1, -1]))
    def write_a_token(self, key: str, tenant: str, days: int | None) -> None:
        expires = None if days is None else NOW + timedelta(days=days)
        self.revoke_a_token(key)
        self.rows.tokens.append(token_row(key, tenant, expires))

    @rule(key=st.sampled_from(KEYS))
    def revoke_a_token(self, key: str) -> None:
        self.rows.tokens = [row for row in self.rows.tokens if row[1] != digest(key)]

    @rule()
    def publish(self) -> None:
        self.current.publish(self.rows.snapshot())
        self.seen = World(**{name: list(getattr(self.rows, name)) for name in World.__slots__})

    # --- what happens meanwhile

    @rule(
        node=nodes,
        busy_with=st.sampled_from([(), VERSIONS[:1], VERSIONS[1:], VERSIONS[:4], VERSIONS]),
        each=st.integers(1, 3),
    )
    def requests_are_in_flight(self, node: str, busy_with: tuple[UUID, ...], each: int) -> None:
        state = self.states[node]
        state.versions = dict.fromkeys(busy_with, each)
        state.in_flight = each * len(busy_with)

    @rule(seconds=st.sampled_from([0.5, 3.0]))
    def time_passes(self, seconds: float) -> None:
        self.time += seconds

    # --- what clients send

    @rule(
        key=st.sampled_from([*KEYS, *KEYS, KEYS[0] + "x", KEYS[0][:-1], "lk_", "", "ключ"]),
        scheme=st.sampled_from(["Bearer ", "Bearer ", "bearer ", "Basic ", ""]),
    )
    def a_key_opens_its_own_tenant_alone(self, key: str, scheme: str) -> None:
        known = {row[1]: row for row in self.in_force.tokens}.get(digest(key))
        expected: str | type[GatewayError] = NotAuthenticated
        if known is not None and scheme.strip().lower() == "bearer":
            expired = known[3] is not None and known[3] <= NOW
            expected = TokenExpired if expired else known[2]
        assert outcome(lambda: authenticate(self.current.get(), scheme + key, now=NOW)) == expected

    @rule(tenant=tenants, model=anything, breaks=st.booleans())
    def a_request_comes(self, tenant: str, model: object, *, breaks: bool) -> None:
        expected = self._expected(tenant, model)
        route = outcome(lambda: resolve(self.current.get(), tenant=tenant, model=model))
        if not isinstance(route, Route):
            assert route == expected
            assert not isinstance(expected, tuple)
            return
        version = route.version
        assert (version.id, version.engine_name, version.state) == expected
        assert version.tenant == route.alias.owner
        assert version.state != "revoked"
        self._forward(route, model, breaks=breaks)

    @precondition(lambda self: self.seen)
    @invariant()
    def every_known_name_goes_where_it_should(self) -> None:
        for tenant in TENANTS:
            for name in NAMES:
                elsewhere = [f"{owner}/{name}" for owner in TENANTS]
                for spelled in (name, name.upper(), f" {name}", f"{name}\n", f"/{name}", *elsewhere):
                    self.a_request_comes(tenant, spelled, breaks=False)
        for key in KEYS:
            self.a_key_opens_its_own_tenant_alone(key, "Bearer ")

    def _expected(self, tenant: str, model: object) -> tuple[UUID, str, str] | type[GatewayError]:
        """Read from the rows alone: an alias that the tenant may call, spelled exactly, and its owner's version."""
        if not isinstance(model, str) or model == "":
            return MissingModel
        spelled = {
            spelling: row
            for row in self.in_force.aliases
            if row[0] == tenant
            for spelling in (row[1], f"{tenant}/{row[1]}")
        }
        if model not in spelled:
            return ModelNotFound
        alias = spelled[model]
        row = {row[0]: row for row in self.in_force.versions}.get(alias[2])
        if row is None or row[1] != owner_of(alias):
            return VersionUnavailable
        return (row[0], row[4], row[7]) if row[7] in SERVED else VersionRevoked

    def _forward(self, route: Route, model: object, *, breaks: bool) -> None:
        version = route.version
        found = candidates(self.current.get(), version)
        fitting = self._fitting(version.id, version.rank)
        assert sorted(candidate.node.name for candidate in found) == sorted(fitting)
        able = {node: machine for node, machine in fitting.items() if not self._broke(node, version.id)}
        chosen = choose(
            found, states=self.states, wish=Wish(), now=self.time, is_absent=self.absences.covers, draw=self._draw
        )
        if isinstance(chosen, Miss):
            assert chosen is (Miss.CROWDED if able else Miss.COLD)
            assert all(self._is_crowded(node, version.id) for node in able)
            return
        name = chosen.node.name
        assert name in self._best(able, version.id)
        body = parse_json_object(json.dumps({"model": model, "n": 1}).encode(), max_depth=8)
        call = engine_call(Ask(COMPLETIONS, {}, body), chosen, request_id="req-1")
        sent = json.loads(call.body, object_pairs_hook=list)
        assert len(sent) == len(dict(sent))
        assert dict(sent) == {"n": 1, **ASKED[able[name].kind](engine_name(version.id))}
        assert (call.engine_url, call.path) == (f"http://{name}.invalid", "/v1/completions")
        if breaks:
            assert chosen.residency is not None
            self.absences.mark(chosen.residency)
            self.marked[name, version.id] = (self._residency(name, version.id), self.time + 2.0)

    def _best(self, able: Mapping[str, Machine], version: UUID) -> set[str]:
        """Of the nodes that have room those that are up, if any; of these not the one that is busiest, if any is."""
        roomy = [node for node in able if not self._is_crowded(node, version)]
        up = [node for node in roomy if able[node].status == "up"] or roomy
        loads = sorted(self.states[node].in_flight for node in up)
        return {node for node in up if len(up) == 1 or self.states[node].in_flight <= loads[-2]}

    def _is_crowded(self, node: str, version: UUID) -> bool:
        busy_with = self.states[node].versions
        return len(busy_with) >= GPU_SLOTS and version not in busy_with

    def _fitting(self, version: UUID, rank: int) -> dict[str, Machine]:
        """Nodes that have it loaded and can answer with it, by name."""
        machines = {row[0]: row for row in self.in_force.nodes}
        fitting: dict[str, Machine] = {}
        for row in self.in_force.residencies:
            node, resident, name, observed, _generation = row
            if (resident, name, observed) != (version, engine_name(version), "loaded") or node not in machines:
                continue
            _, kind, _, base, _, max_rank, _, status = machines[node]
            if kind in ASKED and base == BASE and rank <= max_rank:
                fitting[node] = Machine(kind, status)
        return fitting

    def _broke(self, node: str, version: UUID) -> bool:
        """Whether it has just shown that it can't answer with it, and nothing new was said of that since."""
        marked, until = self.marked.get((node, version), (None, 0.0))
        return marked == self._residency(node, version) and self.time < until

    def _residency(self, node: str, version: UUID) -> Row:
        return next(row for row in self.in_force.residencies if row[:2] == (node, version))

    def _draw(self) -> float:
        """Another pair of nodes each time, the same ones in each run."""
        self.draws += 1
        return self.draws * 0.618034 % 1

    @rule(raw=st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode)))
    def a_body_is_an_object_or_refused(self, raw: bytes) -> None:
        parsed = outcome(lambda: parse_json_object(raw, max_depth=8))
        assert parsed is BadJson or isinstance(parsed, dict)

    @rule(tenant=tenants)
    def the_listing_shows_own_names_alone(self, tenant: str) -> None:
        listed = self.current.get().served_aliases(tenant)
        own = {row[1] for row in self.in_force.aliases if row[0] == tenant}
        assert set(listed) == {name for name in own if isinstance(self._expected(tenant, name), tuple)}

    @property
    def in_force(self) -> World:
        assert self.seen is not None
        return self.seen


def put(rows: list[Row], row: Row, *, key: int = 1) -> None:
    """Replace the row with the same first columns."""
    rows[:] = [*(each for each in rows if each[:key] != row[:key]), row]


def owner_of(alias: Row) -> str:
    """Whose versions the row of an alias speaks of."""
    return str(alias[-1] if len(alias) > OWN_COLUMNS else alias[0])


def outcome(act: Callable[[], Any]) -> Any:
    """What ``act`` returns, or the class of the error that it raises."""
    try:
        return act()
    except GatewayError as error:
        return type(error)


@pytest.mark.parametrize("examples", [40, pytest.param(300, marks=pytest.mark.e2e)])
def test_a_request_goes_to_the_own_alias_and_its_exact_version_or_nowhere(examples: int) -> None:
    run_state_machine_as_test(Routing, settings=settings(max_examples=examples, stateful_step_count=40))
