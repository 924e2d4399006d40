"""The rules of releases/sql hold against whoever writes SQL, whatever the code above does."""

import pytest
from django.db import DatabaseError, connection, transaction

from registry.models import Version
from registry.services.withdrawals import revoke_version, yank_version
from registry.states import VersionState
from releases.models import Alias
from tests.factories.registry import make_actor, make_adapter, make_version
from tests.factories.releases import make_alias, point_alias

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


def run(sql: str, *params: str | int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def refused(sql: str, *params: str | int) -> str:
    """Run ``sql`` in a savepoint; it has to fail. Returns the database's words."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        run(sql, *params)
    return str(caught.value)


def move_sql(alias: Alias, version: Version, kind: str = "move") -> tuple[str, str, int, str, int]:
    changes = "version_id = %s, adapter_id = %s, revision = revision + 1, moved_by = %s"
    return f"UPDATE releases_alias SET {changes} WHERE id = %s", str(version.pk), version.adapter_id, kind, alias.pk


@pytest.mark.parametrize("state", [state for state in VersionState if state is not VersionState.APPROVED])
@pytest.mark.parametrize("kind", ["set", "move", "rollback"])
def test_only_an_approved_version_is_a_target(state: VersionState, kind: str) -> None:
    alias = make_alias()
    version = make_version(adapter=alias.adapter, state=state)
    words = refused(*move_sql(alias, version, kind))
    assert "does not point" in words or (kind == "rollback" and "pointed to before" in words)


def test_a_rollback_goes_only_to_a_version_of_the_own_history() -> None:
    alias = make_alias()
    yanked = make_version(adapter=alias.adapter, state=VersionState.YANKED)
    assert "pointed to before" in refused(*move_sql(alias, yanked, "rollback"))


def test_only_a_rollback_may_go_to_a_yanked_version_and_nothing_to_a_revoked_one() -> None:
    first = make_version()
    point_alias(name="support", version=first)
    alias = point_alias(name="support", version=make_version(adapter=first.adapter))
    yank_version(actor=make_actor(), version=first, reason="old")
    assert "yanked" in refused(*move_sql(alias, first, "move"))
    with transaction.atomic():
        run(*move_sql(alias, first, "rollback"))
        transaction.set_rollback(True)
    revoke_version(actor=make_actor(), version=first, reason="bad")
    assert "revoked" in refused(*move_sql(alias, first, "rollback"))


def test_a_version_of_another_tenant_or_adapter_is_no_target() -> None:
    alias = make_alias()
    assert "own tenant" in refused(*move_sql(alias, make_version()))
    sibling = make_version(adapter=make_adapter(tenant=alias.tenant))
    sql = "UPDATE releases_alias SET version_id = %s, revision = revision + 1 WHERE id = %s"
    assert "own tenant" in refused(sql, str(sibling.pk), alias.pk)


def test_an_alias_begins_at_one_and_counts_without_gaps() -> None:
    alias = make_alias()
    version = make_version(adapter=alias.adapter)
    sql = "UPDATE releases_alias SET version_id = %s, revision = %s WHERE id = %s"
    for revision in (0, 1, 3):
        assert "follow" in refused(sql, str(version.pk), revision, alias.pk)
    insert = (
        "INSERT INTO releases_alias (tenant_id, name, adapter_id, version_id, revision, moved_by, updated_at)"
        " VALUES (%s, 'x', %s, %s, %s, %s, now())"
    )
    for revision, kind in ((2, "set"), (1, "move"), (1, "rollback")):
        assert "begins" in refused(insert, alias.tenant_id, alias.adapter_id, str(version.pk), revision, kind)


def test_an_alias_keeps_its_name() -> None:
    alias = make_alias()
    assert "keeps" in refused("UPDATE releases_alias SET name = 'x', revision = 2 WHERE id = %s", alias.pk)


def test_the_history_never_changes() -> None:
    alias = make_alias()
    assert "never changes" in refused("UPDATE releases_aliasrevision SET reason = 'x' WHERE alias_id = %s", alias.pk)
    assert "never changes" in refused("DELETE FROM releases_aliasrevision WHERE alias_id = %s", alias.pk)


def test_a_made_up_row_of_history_is_refused() -> None:
    alias = make_alias()
    sql = (
        "INSERT INTO releases_aliasrevision (alias_id, number, version_id, previous_version_id, kind, actor_kind,"
        " actor_id, actor_name, reason, at) VALUES (%s, 2, %s, %s, 'move', 'person', 'x', 'x', '', now())"
    )
    other = make_version(adapter=alias.adapter)
    assert "follow on its history" in refused(sql, alias.pk, str(other.pk), str(alias.version_id))


def test_a_move_without_its_row_of_history_is_not_committed() -> None:
    alias = make_alias()
    version = make_version(adapter=alias.adapter)
    with pytest.raises(DatabaseError, match="no row in its history"), transaction.atomic():
        run(*move_sql(alias, version))
        run("SET CONSTRAINTS alias_has_history IMMEDIATE")


def test_a_gateway_reads_the_view_and_nothing_else() -> None:
    alias = make_alias()
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant, alias, version_id, revision FROM routing_aliases")
        assert cursor.fetchall() == [(alias.tenant.name, alias.name, alias.version_id, 1)]
        cursor.execute(
            "SELECT has_table_privilege('lorekeeper_gateway', 'routing_aliases', 'SELECT'),"
            " has_table_privilege('lorekeeper_gateway', 'routing_aliases', 'INSERT, UPDATE, DELETE'),"
            " has_table_privilege('lorekeeper_gateway', 'releases_alias', 'SELECT, INSERT, UPDATE, DELETE'),"
            " has_table_privilege('lorekeeper_gateway', 'releases_aliasrevision', 'SELECT, INSERT, UPDATE, DELETE')"
        )
        assert cursor.fetchone() == (True, False, False, False)


def test_the_application_may_not_delete_aliases_nor_touch_history() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT has_table_privilege('lorekeeper_app', 'releases_alias', 'DELETE, TRUNCATE'),"
            " has_table_privilege('lorekeeper_app', 'releases_aliasrevision', 'UPDATE, DELETE, TRUNCATE'),"
            " has_table_privilege('lorekeeper_app', 'releases_aliasrevision', 'INSERT')"
        )
        assert cursor.fetchone() == (False, False, True)
