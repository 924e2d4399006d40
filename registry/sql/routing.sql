-- What the gateway may read of the registry, and the nudge that tells it to look again.
-- pg_notify is delivered at commit and folds equal payloads of one transaction into one message.
CREATE FUNCTION routing_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('lorekeeper_routing', TG_ARGV[0]);
    RETURN NULL;
END $$;

CREATE VIEW routing_versions AS
    SELECT v.id AS version_id, t.name::text AS tenant, a.name::text AS adapter, v.name::text AS version,
           v.engine_name::text AS engine_name, r.digest::text AS base_digest, v.rank AS rank, v.state::text AS state
    FROM registry_version v
    JOIN registry_adapter a ON a.id = v.adapter_id
    JOIN registry_tenant t ON t.id = a.tenant_id
    JOIN registry_basemodelrevision r ON r.id = v.base_revision_id
    JOIN registry_signature s ON s.version_id = v.id
    WHERE v.state IN ('approved', 'yanked', 'revoked');

CREATE VIEW routing_tokens AS
    SELECT k.prefix::text AS prefix, k.digest::text AS digest, t.name::text AS tenant, k.expires_at
    FROM registry_apitoken k
    JOIN registry_tenant t ON t.id = k.tenant_id
    WHERE k.revoked_at IS NULL AND k.kind = 'application' AND 'infer' = ANY (k.scopes);

CREATE TRIGGER routing_version_changed AFTER UPDATE OF state ON registry_version
    FOR EACH STATEMENT EXECUTE FUNCTION routing_changed('versions');
CREATE TRIGGER routing_token_made AFTER INSERT OR DELETE ON registry_apitoken
    FOR EACH STATEMENT EXECUTE FUNCTION routing_changed('tokens');
CREATE TRIGGER routing_token_changed AFTER UPDATE OF revoked_at, expires_at, scopes, digest ON registry_apitoken
    FOR EACH STATEMENT EXECUTE FUNCTION routing_changed('tokens');
