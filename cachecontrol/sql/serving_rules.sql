-- What the gateway reads of a tenant's rules. A tenant without a row has the defaults.
CREATE VIEW routing_rules AS
    SELECT t.name::text AS tenant, r.requests_per_minute, r.tokens_per_minute, r.concurrent_requests,
           r.gpu_ms_per_minute, r.base_models::text[] AS base_models, r.allows_shadow
    FROM cachecontrol_tenantrules r
    JOIN registry_tenant t ON t.id = r.tenant_id;

-- What the cache policy in force of each base model says of requests that find nothing loaded: one row for everybody
-- (tenant '') and one for each tenant that it names. A policy from before a key was there means the key's default.
CREATE VIEW routing_cold_rules AS
    WITH served AS (
        SELECT b.name::text AS base_model, p.document
        FROM cachecontrol_cachepolicy p
        JOIN registry_basemodel b ON b.id = p.base_model_id
        WHERE p.state = 'active'
    ), named AS (
        SELECT base_model, ''::text AS tenant, document #> '{sla_classes,standard}' AS sla FROM served
        UNION ALL
        SELECT s.base_model, t.key, s.document -> 'sla_classes' -> (t.value ->> 'sla')
        FROM served s, jsonb_each(s.document -> 'tenants') t
    )
    SELECT base_model, tenant, coalesce(sla ->> 'on_cold', 'wait') AS on_cold,
           (sla ->> 'wait_s')::double precision AS wait_s, (sla ->> 'token_ms')::double precision AS token_ms
    FROM named;

CREATE FUNCTION routing_rules_noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note('rules', (SELECT name FROM registry_tenant WHERE id = coalesce(NEW.tenant_id, OLD.tenant_id)), true);
    RETURN NULL;
END $$;
CREATE TRIGGER routing_rules_noted AFTER INSERT OR UPDATE OR DELETE ON cachecontrol_tenantrules
    FOR EACH ROW EXECUTE FUNCTION routing_rules_noted();

CREATE FUNCTION routing_cold_rules_noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note('cold_rules', '', true);
    RETURN NULL;
END $$;
CREATE TRIGGER routing_cold_rules_noted AFTER UPDATE OF state ON cachecontrol_cachepolicy
    FOR EACH ROW EXECUTE FUNCTION routing_cold_rules_noted();

GRANT SELECT ON routing_rules, routing_cold_rules TO lorekeeper_gateway;
GRANT SELECT, INSERT ON cachecontrol_tenantrules TO lorekeeper_app;
GRANT UPDATE (requests_per_minute, tokens_per_minute, concurrent_requests, gpu_ms_per_minute, base_models,
              allows_shadow, updated_at)
    ON cachecontrol_tenantrules TO lorekeeper_app;
DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('cachecontrol_tenantrules', 'id'));
END $$;
