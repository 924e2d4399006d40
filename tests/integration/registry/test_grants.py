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
    "registry_auditcheck": {"SELECT", "INSERT"},
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
    "registry_webhookattempt": {"SELECT", "INSERT", "DELETE"},
    "registry_webhookcursor": {"SELECT", "INSERT", "DELETE"},
    "registry_webhookdelivery": {"SELECT", "INSERT", "DELETE"},
    "registry_webhookendpoint": {"SELECT", "INSERT", "DELETE"},
    "releases_alias": {"SELECT", "INSERT", "UPDATE"},
    "releases_aliasgrant": {"SELECT", "INSERT", "DELETE"},
    "releases_aliasinterval": {"SELECT"},
    "releases_aliasprotection": {"SELECT", "INSERT", "DELETE"},
    "releases_aliasrevision": {"SELECT", "INSERT"},
    "releases_aliassplit": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "releases_release": {"SELECT", "INSERT"},
    "releases_releaseapproval": {"SELECT", "INSERT"},
    "releases_releasestep": {"SELECT", "INSERT"},
    "releases_releasetemplate": {"SELECT", "INSERT"},
    "releases_rollback": {"SELECT", "INSERT"},
    "cachecontrol_cachepolicy": {"SELECT", "INSERT"},
    "cachecontrol_eviction": {"SELECT", "INSERT"},
    "cachecontrol_heatcursor": {"SELECT", "INSERT", "UPDATE"},
    "cachecontrol_lease": {"SELECT", "INSERT", "UPDATE"},
    "cachecontrol_loadfailure": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "cachecontrol_loadrequest": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "cachecontrol_node": {"SELECT", "INSERT", "UPDATE"},
    "cachecontrol_tenantheat": {"SELECT", "INSERT", "UPDATE"},
    "cachecontrol_tenantrules": {"SELECT", "INSERT"},
    "cachecontrol_versionheat": {"SELECT", "INSERT", "UPDATE"},
    "cachecontrol_residency": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "gateway_feedback": {"SELECT"},
    "gateway_request": {"SELECT"},
    "gateway_shadow": {"SELECT"},
    "account_emailaddress": {"SELECT"},
    "account_emailconfirmation": {"SELECT"},
    "django_session": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "mfa_authenticator": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "socialaccount_socialaccount": {"SELECT", "INSERT", "UPDATE"},
    "socialaccount_socialapp": {"SELECT"},
    "socialaccount_socialtoken": {"SELECT"},
    "usersessions_usersession": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "django_migrations": {"SELECT"},
    "django_content_type": {"SELECT"},
}

MAY_CHANGE = {
    "cachecontrol_cachepolicy": {"state", "decided_by_id", "decided_at", "reason", "activated_at"},
    "cachecontrol_tenantrules": {
        "requests_per_minute",
        "tokens_per_minute",
        "concurrent_requests",
        "gpu_ms_per_minute",
        "base_models",
        "allows_shadow",
        "updated_at",
    },
    "registry_adapter": {"description"},
    "registry_auditnotice": {"count", "told", "last_at"},
    "registry_apitoken": {"last_used_at", "revoked_at"},
    "registry_approvalpolicy": {"required", "roles", "only_people", "required_people", "validity_days", "updated_at"},
    "registry_artifact": {"size", "stored_at"},
    "registry_evaluationgates": {"gates", "changed_at"},
    "registry_evaluationset": {"adapter_id", "examples", "digest", "changed_at"},
    "registry_hubcommit": {"parent", "title", "description", "tree_digest", "sealed_at"},
    "registry_hubdraft": {"head_id", "changed_at"},
    "registry_person": {"is_platform_admin", "last_login", "password"},
    "registry_pipelinekey": {"revoked_at", "revoked_reason"},
    "registry_retentionpolicy": {"keep_days", "automatic", "applied_at", "swept_at", "updated_at"},
    "registry_revalidation": {"sent_at", "finished_at", "report_id"},
    "registry_signature": {"key_id", "bundle", "attestation", "resigned_at"},
    "registry_signingkey": {"valid_to", "revoked_at", "revoked_reason"},
    "registry_tenant": {"require_pipeline_signature"},
    "registry_uploadinparts": {"digests"},
    "releases_aliasprotection": {"movers", "needs_release", "changed_at"},
    "releases_release": {
        "state",
        "step",
        "revision",
        "paused_state",
        "pause_kind",
        "sentence",
        "started_at",
        "ended_at",
        "looked_at",
    },
    "releases_releasestep": {
        "state",
        "attempt",
        "started_at",
        "resumed_at",
        "ended_at",
        "sentence",
        "verdict",
        "judged_at",
        "course",
    },
    "releases_rollback": {"last_answer_at", "strays", "settled_at"},
    "registry_auditcheck": {"reached", "hash", "signed_to", "moved_at", "ended_at", "finding", "broken_at"},
    "registry_webhookcursor": {"seq"},
    "registry_webhookdelivery": {"state", "tries", "next_at", "ended_at", "again_of_id"},
    "registry_webhookendpoint": {
        "url",
        "kinds",
        "secret",
        "previous_secret",
        "previous_until",
        "failing_since",
        "disabled_at",
        "disabled_reason",
    },
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
    views |= {"routing_change", "routing_feed", "routing_rules", "routing_cold_rules"}
    written = {"gateway_request", "gateway_shadow", "gateway_feedback"}
    expected = {view: {"SELECT"} for view in views} | {table: {"INSERT"} for table in written}
    assert granted("lorekeeper_gateway") == expected
