"""Least privilege: what the application's role may do to each table, written out a second time."""

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db

MAY = {
    "registry_adapter": {"SELECT", "INSERT"},
    "registry_apitoken": {"SELECT", "INSERT"},
    "registry_approval": {"SELECT", "INSERT"},
    "registry_approvalpolicy": {"SELECT", "INSERT"},
    "registry_artifact": {"SELECT", "INSERT"},
    "registry_auditcheckpoint": {"SELECT", "INSERT"},
    "registry_auditnotice": {"SELECT", "INSERT", "DELETE"},
    "registry_auditrecord": {"SELECT"},
    "registry_basemodel": {"SELECT", "INSERT"},
    "registry_basemodelrevision": {"SELECT", "INSERT"},
    "registry_evaluationgates": {"SELECT", "INSERT"},
    "registry_evaluationset": {"SELECT", "INSERT", "DELETE"},
    "registry_hubcommit": {"SELECT", "INSERT", "DELETE"},
    "registry_hubdraft": {"SELECT", "INSERT", "DELETE"},
    "registry_hubfile": {"SELECT", "INSERT", "DELETE"},
    "registry_idempotentanswer": {"SELECT", "INSERT", "DELETE"},
    "registry_membership": {"SELECT", "INSERT", "DELETE"},
    "registry_person": {"SELECT", "INSERT"},
    "registry_pipelinekey": {"SELECT", "INSERT"},
    "registry_pipelinesignature": {"SELECT", "INSERT"},
    "registry_retentionpolicy": {"SELECT", "INSERT"},
    "registry_revalidation": {"SELECT", "INSERT"},
    "registry_signature": {"SELECT", "INSERT"},
    "registry_signingkey": {"SELECT", "INSERT"},
    "registry_tenant": {"SELECT", "INSERT"},
    "registry_uploadinparts": {"SELECT", "INSERT", "DELETE"},
    "registry_validationreport": {"SELECT", "INSERT"},
    "registry_version": {"SELECT", "INSERT", "UPDATE"},
    "registry_versioncomment": {"SELECT", "INSERT"},
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
    "registry_auditnotice": {"count", "told", "last_at"},
    "registry_apitoken": {"last_used_at", "revoked_at"},
    "registry_approvalpolicy": {"required", "roles", "only_people", "required_people", "validity_days", "updated_at"},
    "registry_artifact": {"size", "stored_at"},
    "registry_evaluationgates": {"gates", "changed_at"},
    "registry_evaluationset": {"adapter_id", "examples", "digest", "changed_at"},
    "registry_hubcommit": {"parent", "title", "description", "tree_digest", "sealed_at"},
    "registry_hubdraft": {"head_id", "changed_at"},
    "registry_person": {"is_platform_admin", "password"},
    "registry_pipelinekey": {"revoked_at", "revoked_reason"},
    "registry_retentionpolicy": {"keep_days", "automatic", "applied_at", "swept_at", "updated_at"},
    "registry_revalidation": {"sent_at", "finished_at", "report_id"},
    "registry_signature": {"key_id", "bundle", "attestation", "resigned_at"},
    "registry_signingkey": {"valid_to", "revoked_at", "revoked_reason"},
    "registry_tenant": {"require_pipeline_signature"},
    "registry_uploadinparts": {"digests"},
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
