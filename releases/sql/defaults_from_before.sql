-- The default of each adapter that has approved versions: it stands for what the name `main` has meant so far (the alias
-- `default`, or where all aliases of the adapter agree), or else for the version that was approved first.
DO $$
DECLARE
    c_reason constant text := 'Every adapter with an approved version has a default.';
    v_new record;
    v_alias bigint;
BEGIN
    FOR v_new IN
        SELECT DISTINCT ON (a.id) a.id AS adapter_id, a.name AS adapter, t.id AS tenant_id, t.name AS tenant,
               v.id AS version_id, v.name AS version, v.root_digest
        FROM registry_adapter a
        JOIN registry_tenant t ON t.id = a.tenant_id
        JOIN registry_version v ON v.adapter_id = a.id AND v.state = 'approved' AND v.purged_at IS NULL
        JOIN registry_signature s ON s.version_id = v.id
        LEFT JOIN LATERAL (
            SELECT coalesce(max(r.version_id::text) FILTER (WHERE r.name = 'default'),
                            CASE WHEN count(DISTINCT r.version_id) = 1 THEN max(r.version_id::text) END) AS version_id
            FROM releases_alias r WHERE r.adapter_id = a.id
        ) main ON true
        ORDER BY a.id, (v.id::text = main.version_id) DESC NULLS LAST, v.state_changed_at, v.id
    LOOP
        INSERT INTO releases_alias (tenant_id, name, adapter_id, version_id, revision, moved_by, updated_at)
        VALUES (v_new.tenant_id, v_new.adapter || '.default', v_new.adapter_id, v_new.version_id, 1, 'set', now())
        RETURNING id INTO v_alias;
        INSERT INTO releases_aliasrevision (
            alias_id, number, version_id, kind, actor_kind, actor_id, actor_name, reason, at)
        VALUES (v_alias, 1, v_new.version_id, 'set', 'system', 'migrate', 'migrate', c_reason, now());
        -- In the canonical form: all of these are plain letters.
        PERFORM audit_append(
            v_new.tenant,
            format('"action":"tenant:alias:set","actor":{"id":"migrate","kind":"system","name":"migrate","token":""},'
                   '"after":{"revision":1,"root_digest":"%s","version":"%s/%s@%s","version_id":"%s"}',
                   v_new.root_digest, v_new.tenant, v_new.adapter, v_new.version, v_new.version_id),
            format('"before":null,"chain":"%s","how":"command","object":{"id":"%s","kind":"alias",'
                   '"name":"%s/%s.default"},"reason":"%s","request_id":""',
                   v_new.tenant, v_alias, v_new.tenant, v_new.adapter, c_reason),
            '"source":"migrate","v":2');
    END LOOP;
END $$;
