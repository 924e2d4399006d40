-- Least privilege. The roles are made by deploy/postgres/roles.sql; the owner runs this.
GRANT USAGE ON SCHEMA public TO lorekeeper_app, lorekeeper_gateway;
GRANT SELECT, INSERT, DELETE ON registry_membership TO lorekeeper_app;
GRANT SELECT, INSERT, UPDATE ON registry_version TO lorekeeper_app;
-- Locking a row takes the right to change a column of it.
GRANT UPDATE (description) ON registry_adapter TO lorekeeper_app;
GRANT UPDATE (size, stored_at) ON registry_artifact TO lorekeeper_app;
GRANT UPDATE (last_used_at, revoked_at) ON registry_apitoken TO lorekeeper_app;
GRANT UPDATE (is_platform_admin, password) ON registry_person TO lorekeeper_app;
GRANT SELECT, INSERT ON
    registry_tenant, registry_person, registry_apitoken, registry_basemodel, registry_basemodelrevision,
    registry_adapter, registry_artifact, registry_signingkey,
    registry_versionfile, registry_validationreport, registry_approval, registry_signature TO lorekeeper_app;
GRANT SELECT ON registry_auditrecord, django_migrations, django_content_type TO lorekeeper_app;
REVOKE ALL ON FUNCTION audit_append(text, text, text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit_append(text, text, text, text) TO lorekeeper_app;
DO $$
DECLARE s text;
BEGIN
    FOR s IN SELECT pg_get_serial_sequence('public.' || c.relname, 'id') FROM pg_class c
             WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname LIKE 'registry\_%'
               AND c.relname NOT IN ('registry_auditrecord', 'registry_version')
    LOOP
        EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', s);
    END LOOP;
END $$;
GRANT SELECT ON routing_versions, routing_tokens TO lorekeeper_gateway;
