"""The gateway against the migrated database: views, rights, notifications and records as they really are."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx
import psycopg
import pytest
from django.db import connection, connections
from django.utils import timezone

from cachecontrol.models import GatewayRequest, Node, Residency
from deploy.embedded.postgres import GATEWAY, PostgresServer
from gateway.database import connect
from gateway.records import RecordWriter
from gateway.routing.authenticate import authenticate
from gateway.routing.reading import read_snapshot as read_views
from gateway.routing.resolve import Route, resolve
from gateway.routing.snapshot import RoutingSnapshot
from gateway.routing.source import CHANNEL, named_version
from gateway.trace import Trace
from registry.actors import Actor
from registry.models import Tenant
from registry.services.tokens import NewToken, create_tenant_token, revoke_token
from registry.services.withdrawals import revoke_version
from registry.states import Role, Scope, TokenKind
from releases.services.aliases import set_alias
from releases.services.sharing import end_grant, grant_alias
from tests.factories.cachecontrol import make_node
from tests.factories.registry import make_actor, make_member, make_person, make_tenant, make_version
from tests.fakes.engine_vllm import FakeEngineServer
from tests.integration.gateway.conftest import gateway_process
from tests.integration.gateway.test_cold import load

pytestmark = pytest.mark.django_db(transaction=True)

VIEWS = {
    f"routing_{name}"
    for name in (
        *("aliases", "versions", "nodes", "residencies", "tokens", "rules", "cold_rules"),
        *("change", "feed"),
    )
}


@pytest.fixture
def gateway_database(postgres: PostgresServer, transactional_db: None) -> str:
    """The URL of Django's test database for the gateway's role."""
    return postgres.url(GATEWAY, database=str(connections["default"].settings_dict["NAME"]))


def platform_admin() -> Actor:
    return make_actor(make_person(is_platform_admin=True))


def make_key(tenant: Tenant) -> NewToken:
    return create_tenant_token(
        actor=platform_admin(), tenant=tenant, name="app", kind=TokenKind.APPLICATION, scopes=[Scope.INFER]
    )


def read_snapshot(url: str) -> RoutingSnapshot:
    async def read() -> RoutingSnapshot:
        async with await connect(url, purpose="test") as opened:
            await opened.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            return (await read_views(opened)).snapshot

    return asyncio.run(read())


def test_a_released_version_can_be_resolved_with_a_tenants_key(gateway_database: str, sent: list[Any]) -> None:
    version = make_version()
    tenant = version.adapter.tenant
    actor = make_member(tenant, *Role)
    set_alias(actor=actor, tenant=tenant, name="support", adapter=version.adapter, version=version)
    key = make_key(tenant)
    header = f"Bearer {key.text}"
    snapshot = read_snapshot(gateway_database)
    assert authenticate(snapshot, header, now=datetime.now(UTC)) == tenant.name
    route = resolve(snapshot, tenant=tenant.name, model="support")
    assert isinstance(route, Route)
    assert route.version.id == version.pk
    assert route.version.engine_name == version.engine_name
    assert route.version.base_digest == version.base_revision.digest
    revoke_token(actor=platform_admin(), tenant=tenant, prefix=key.token.prefix)
    assert not read_snapshot(gateway_database).tokens


def test_a_shared_alias_is_resolved_with_the_key_of_the_tenant_that_may_call_it(
    gateway_database: str, sent: list[Any]
) -> None:
    version, guest = make_version(), make_tenant()
    owner = version.adapter.tenant
    alias = set_alias(actor=make_actor(), tenant=owner, name="support", adapter=version.adapter, version=version)
    grant_alias(actor=platform_admin(), alias=alias, tenant=guest, name="assistant")
    snapshot = read_snapshot(gateway_database)
    route = resolve(snapshot, tenant=guest.name, model="assistant")
    assert isinstance(route, Route)
    assert (route.version.id, route.alias.tenant, route.alias.owner) == (version.pk, guest.name, owner.name)
    assert snapshot.served_aliases(guest.name) == ("assistant",)
    assert snapshot.served_aliases(owner.name) == ("support",)
    end_grant(actor=platform_admin(), alias=alias, tenant=guest)
    assert read_snapshot(gateway_database).served_aliases(guest.name) == ()


def test_a_move_a_revocation_and_a_token_are_each_notified(gateway_database: str, sent: list[Any]) -> None:
    version = make_version()
    tenant = version.adapter.tenant
    actor = make_member(tenant, *Role)
    with psycopg.connect(gateway_database, autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}".encode())
        set_alias(actor=actor, tenant=tenant, name="support", adapter=version.adapter, version=version)
        assert "aliases" in {note.payload for note in listener.notifies(timeout=1)}
        make_key(tenant)
        assert "tokens" in {note.payload for note in listener.notifies(timeout=1)}
        revoke_version(actor=actor, version=version, reason="bad")
        told = {note.payload for note in listener.notifies(timeout=1)}
        assert "versions" in told
        assert {named_version(payload, "revoked") for payload in told} == {None, version.pk}


def test_records_arrive_in_the_real_table(gateway_database: str) -> None:
    writer = RecordWriter(database_url=gateway_database, bound=10, flush_s=1)
    writer.add(Trace(request_id="req-1", tenant="acme").record(status=200, error_kind=""))
    asyncio.run(writer.flush(timeout_s=5))
    assert writer.pending == 0
    assert GatewayRequest.objects.get().request_id == "req-1"


def test_an_application_marks_an_answer_and_the_mark_finds_its_request(gateway_database: str, sent: list[Any]) -> None:
    version = make_version()
    tenant = version.adapter.tenant
    alias = set_alias(
        actor=make_member(tenant, *Role), tenant=tenant, name="support", adapter=version.adapter, version=version
    )
    key = make_key(tenant)
    began = timezone.now()

    async def ask_and_mark() -> str:
        headers = {"authorization": f"Bearer {key.text}"}
        async with (
            gateway_process(gateway_database, "http://127.0.0.1:9") as (process, url),
            httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as client,
        ):
            answer = await client.post("/v1/chat/completions", json={"model": alias.name, "messages": []})
            request_id = answer.headers["x-lorekeeper-request-id"]
            for mark in ("up", 0.25):
                said = await client.post("/v1/feedback", json={"request_id": request_id, "mark": mark})
                assert (answer.status_code, said.status_code) == (200, 202)
            # What is still in memory is written at the end.
            process.terminate()
            await process.wait()
        return request_id

    with FakeEngineServer() as engine:
        load(engine, version.engine_name)
        node = make_node(base_revision=version.base_revision, engine_url=engine.url)
        Residency.objects.create(
            node=node, version=version, desired="gpu", observed="loaded", state_changed_at=timezone.now()
        )
        request_id = asyncio.run(ask_and_mark())
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.version_id, m.request_id, m.mark FROM gateway_request r"
            " JOIN gateway_marks(%(since)s) m USING (tenant, request_id) WHERE r.at >= %(since)s AND NOT r.is_shadow",
            {"since": began},
        )
        assert cursor.fetchall() == [(version.pk, request_id, 0.25)]


def test_the_gateways_role_has_no_right_beyond_the_views_and_new_records(gateway_database: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, has_any_column_privilege(%s, oid, 'SELECT'),"
            " has_any_column_privilege(%s, oid, 'INSERT'), has_any_column_privilege(%s, oid, 'UPDATE'),"
            " has_table_privilege(%s, oid, 'DELETE, TRUNCATE, REFERENCES, TRIGGER')"
            " FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm', 'p', 'f')",
            [GATEWAY] * 4,
        )
        rows = cursor.fetchall()
    assert len(rows) > len(VIEWS)
    assert {name for name, selects, *_ in rows if selects} == VIEWS
    assert {name for name, _, inserts, *_ in rows if inserts} == {
        "gateway_request",
        "gateway_shadow",
        "gateway_feedback",
    }
    assert [name for name, _, _, updates, destroys in rows if updates or destroys] == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM registry_apitoken",
        "SELECT * FROM gateway_request",
        "DELETE FROM gateway_request",
        "CREATE TABLE mine (a int)",
        "SELECT audit_append('a', 'b', 'c', 'd')",
    ],
)
def test_what_the_gateways_role_may_not_do_is_refused(gateway_database: str, statement: str) -> None:
    with (
        psycopg.connect(gateway_database, autocommit=True) as opened,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        opened.execute(statement.encode())


def test_the_views_have_the_columns_that_the_snapshot_reads(gateway_database: str) -> None:
    assert Node.objects.count() == 0
    assert read_snapshot(gateway_database).nodes == {}
