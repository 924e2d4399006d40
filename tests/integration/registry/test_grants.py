"""Least privilege: what the application's role may do to each table, written out a second time."""

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db

MAY = {
    "registry_adapter": {"SELECT", "INSERT"},
    "registry_apitoken": {"SELECT", "INSERT"},
    "registry_approval": {"SELECT", "INSERT"},
    "registry_artifact": {"SELECT", "INSERT"},
    "registry_auditrecord": {"SELECT"},
    "registry_basemodel": {"SELECT", "INSERT"},
    "registry_basemodelrevision": {"SELECT", "INSERT"},
    "registry_membership": {"SELECT", "INSERT", "DELETE"},
    "registry_person": {"SELECT", "INSERT"},
    "registry_signature": {"SELECT", "INSERT"},
    "registry_signingkey": {"SELECT", "INSERT"},
    "registry_tenant": {"SELECT", "INSERT"},
    "registry_validationreport": {"SELECT", "INSERT"},
    "registry_version": {"SELECT", "INSERT", "UPDATE"},
    "registry_versionfile": {"SELECT", "INSERT"},
    "releases_alias": {"SELECT", "INSERT", "UPDATE"},
    "releases_aliasrevision": {"SELECT", "INSERT"},
    "cachecontrol_node": {"SELECT", "INSERT", "UPDATE"},
    "cachecontrol_residency": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "gateway_request": {"SELECT"},
    "django_migrations": {"SELECT"},
    "django_content_type": {"SELECT"},
}

MAY_CHANGE = {
    "registry_adapter": {"description"},
    "registry_apitoken": {"last_used_at", "revoked_at"},
    "registry_artifact": {"size", "stored_at"},
    "registry_person": {"is_platform_admin", "password"},
}


def granted(role: str) -> dict[str, set[str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, privilege_type FROM information_schema.role_table_grants WHERE grantee = %s", [role]
        )
        found: dict[str, set[str]] = {}
        for table, privilege in cursor.fetchall():
            found.setdefault(table, set()).add(privilege)
    return found


def test_the_applications_role_may_do_to_tables_what_it_needs_and_no_more() -> None:
    assert granted("lorekeeper_app") == MAY


def test_the_applications_role_changes_only_the_columns_that_may_change() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.role_column_grants"
            " WHERE grantee = 'lorekeeper_app' AND privilege_type = 'UPDATE' AND table_name = ANY (%s)",
            [list(MAY_CHANGE)],
        )
        found: dict[str, set[str]] = {}
        for table, column in cursor.fetchall():
            found.setdefault(table, set()).add(column)
    assert found == MAY_CHANGE


def test_the_gateways_role_reads_views_and_appends_requests() -> None:
    views = {"routing_versions", "routing_tokens", "routing_aliases", "routing_nodes", "routing_residencies"}
    assert granted("lorekeeper_gateway") == {**{view: {"SELECT"} for view in views}, "gateway_request": {"INSERT"}}
