"""What is noted for gateways, by which change, and when it's forgotten."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.utils import timezone

from cachecontrol.models import Node, Residency
from cachecontrol.services.residencies import warm_version
from cachecontrol.states import Outcome
from registry.models import ApiToken, Tenant, Version
from registry.services.routing import forget_old_changes
from registry.services.tokens import create_tenant_token, revoke_token
from registry.services.withdrawals import revoke_version, yank_version
from registry.states import Role, Scope, TokenKind
from releases.services.aliases import roll_back_alias
from releases.services.splits import SplitWish, clear_split, set_split
from tests.factories.cachecontrol import make_node, report, tell
from tests.factories.registry import make_actor, make_member, make_person, make_version
from tests.factories.releases import point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]

Noted = Callable[[], list[tuple[str, str]]]


@pytest.fixture
def noted(db: None) -> Noted:
    """``noted()``: what was noted since it was called last."""
    last = 0

    def since() -> list[tuple[str, str]]:
        nonlocal last
        with connection.cursor() as cursor:
            cursor.execute("SELECT seq, kind, key FROM routing_change WHERE seq > %s ORDER BY seq", [last])
            rows = cursor.fetchall()
        last = rows[-1][0] if rows else last
        return [(kind, key) for _seq, kind, key in rows]

    since()
    return since


def test_an_alias_is_noted_by_tenant_and_name_with_each_move_and_split(noted: Noted) -> None:
    version = make_version()
    other = make_version(adapter=version.adapter)
    noted()
    alias = point_alias(name="support", version=version)
    key = ("aliases", f"{alias.tenant.name}/support")
    assert noted() == [key]
    actor = make_actor()
    set_split(actor=actor, alias=alias, wish=SplitWish(candidate=other, basis_points=500))
    assert noted() == [key]
    clear_split(actor=actor, alias=alias)
    assert noted() == [key]
    point_alias(name="support", version=other)
    roll_back_alias(actor=actor, alias=alias)
    assert noted() == [key, key]


def test_a_version_is_noted_from_its_approval_on(noted: Noted) -> None:
    version = make_version()
    assert set(noted()) == {("versions", str(version.pk))}
    Version.objects.filter(pk=version.pk).update(validation_sent_at=timezone.now())
    assert noted() == []
    yank_version(actor=make_actor(), version=version, reason="old")
    assert noted() == [("versions", str(version.pk))]
    revoke_version(actor=make_actor(), version=version, reason="bad")
    assert ("versions", str(version.pk)) in noted()


def make_key(tenant: Tenant, kind: TokenKind, *scopes: Scope) -> ApiToken:
    email = make_person(roles={tenant: tuple(Role)}).email if kind is TokenKind.PERSON else None
    made = create_tenant_token(
        actor=make_actor(), tenant=tenant, name="t", kind=kind, scopes=list(scopes), person_email=email
    )
    return made.token


def test_an_applications_key_is_noted_by_its_digest_and_nobody_elses(noted: Noted) -> None:
    tenant = make_version().adapter.tenant
    noted()
    make_key(tenant, TokenKind.PERSON, Scope.READ)
    assert noted() == []
    token = make_key(tenant, TokenKind.APPLICATION, Scope.INFER)
    assert noted() == [("tokens", token.digest)]
    ApiToken.objects.filter(pk=token.pk).update(last_used_at=timezone.now())
    assert noted() == []
    revoke_token(actor=make_actor(make_person(is_platform_admin=True)), tenant=tenant, prefix=token.prefix)
    assert noted() == [("tokens", token.digest)]


def test_nodes_and_what_is_on_them_are_noted_but_heartbeats_are_not(noted: Noted) -> None:
    version = make_version()
    node = make_node(base_revision=version.base_revision, name="n1")
    assert ("nodes", "n1") in noted()
    warm_version(actor=make_actor(), node=node, version=version)
    tell(node, version, Outcome.LOADED)
    assert set(noted()) == {("residencies", str(version.pk))}
    report(node, loaded=(version.engine_name,))
    noted()
    report(node, loaded=(version.engine_name,))
    assert noted() == []
    Residency.objects.update(tier="cpu")
    assert noted() == [("residencies", str(version.pk))], "for the poll"
    Residency.objects.update(tier="cpu", last_used_at=timezone.now())
    assert noted() == []
    Node.objects.update(status=node.status, draining=True)
    assert noted() == [("nodes", "n1")]


def test_old_changes_are_forgotten_and_the_newest_of_them_is_remembered(noted: Noted) -> None:
    make_member(make_version().adapter.tenant, Role.VIEWER)
    mine = noted()
    assert mine
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO routing_change (xid, kind, key, at) VALUES"
            " ('3', 'nodes', 'old', now() - interval '11 minutes'),"
            " ('4', 'nodes', 'older', now() - interval '11 minutes'),"
            " ('5', 'nodes', 'young', now() - interval '9 minutes'),"
            " (pg_current_xact_id(), 'nodes', 'running', now() - interval '11 minutes')"
        )
        assert forget_old_changes() == 2
        cursor.execute("SELECT key FROM routing_change WHERE kind = 'nodes' ORDER BY seq")
        assert [key for (key,) in cursor.fetchall()] == ["young", "running"]
        cursor.execute("SELECT forgotten::text FROM routing_feed")
        assert cursor.fetchone() == ("4",)
    assert forget_old_changes() == 0


def test_what_a_dump_of_another_database_numbered_is_forgotten_and_holds_nobody_up(noted: Noted) -> None:
    make_member(make_version().adapter.tenant, Role.VIEWER)
    mine = noted()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO routing_change (xid, kind, key) VALUES ('9000000000000', 'nodes', 'elsewhere')")
        cursor.execute("UPDATE routing_feed SET forgotten = '9000000000000'")
        forget_old_changes()
        cursor.execute("SELECT kind, key FROM routing_change ORDER BY seq DESC LIMIT %s", [len(mine)])
        assert cursor.fetchall()[::-1] == mine
        cursor.execute("SELECT forgotten <= pg_snapshot_xmin(pg_current_snapshot()) FROM routing_feed")
        assert cursor.fetchone() == (True,)


@pytest.mark.parametrize(("role", "may"), [("lorekeeper_app", True), ("lorekeeper_gateway", False), ("public", False)])
def test_only_the_application_notes_and_forgets(role: str, may: bool) -> None:
    calls = ("routing_note(text, text, boolean)", "routing_forget(interval)")
    with connection.cursor() as cursor:
        for call in calls:
            cursor.execute("SELECT has_function_privilege(%s, %s, 'EXECUTE')", [role, call])
            assert cursor.fetchone() == (may,)
