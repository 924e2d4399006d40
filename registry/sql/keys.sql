-- Rules for keys and what they sign, and what the application's role may do with them.

-- A key keeps its identity and beginning; its end is only ever moved to a time to come, so that nothing signed so far
-- falls out of its window; a revocation stays.
CREATE FUNCTION signing_key_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE'
        OR (NEW.id, NEW.key_id, NEW.public_pem, NEW.valid_from)
            IS DISTINCT FROM (OLD.id, OLD.key_id, OLD.public_pem, OLD.valid_from)
    THEN
        RAISE EXCEPTION 'a published key never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.valid_to IS DISTINCT FROM OLD.valid_to
        AND (NEW.valid_to IS NULL OR NEW.valid_to <= now() OR OLD.valid_to <= now())
    THEN
        RAISE EXCEPTION 'the end of a key lies in the future, and an end that has come stays'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF OLD.revoked_at IS NOT NULL
        AND (NEW.revoked_at, NEW.revoked_reason) IS DISTINCT FROM (OLD.revoked_at, OLD.revoked_reason)
    THEN
        RAISE EXCEPTION 'a revocation stays' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER signing_key_guard BEFORE UPDATE OR DELETE ON registry_signingkey
    FOR EACH ROW EXECUTE FUNCTION signing_key_guard();

-- A signature never changes, but for one made by a key that was revoked: another key signs the same bytes again.
CREATE OR REPLACE FUNCTION signature_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE'
        AND (NEW.id, NEW.version_id, NEW.root_digest, NEW.created_at)
            IS NOT DISTINCT FROM (OLD.id, OLD.version_id, OLD.root_digest, OLD.created_at)
        AND EXISTS (SELECT 1 FROM registry_signingkey k WHERE k.id = OLD.key_id AND k.revoked_at IS NOT NULL)
        AND EXISTS (SELECT 1 FROM registry_signingkey k WHERE k.id = NEW.key_id AND k.revoked_at IS NULL)
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a signature never changes' USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE FUNCTION pipeline_key_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE'
        OR (NEW.id, NEW.tenant_id, NEW.name, NEW.key_id, NEW.public_pem, NEW.created_at)
            IS DISTINCT FROM (OLD.id, OLD.tenant_id, OLD.name, OLD.key_id, OLD.public_pem, OLD.created_at)
        OR OLD.revoked_at IS NOT NULL
    THEN
        RAISE EXCEPTION 'a registered key is only ever revoked, and once' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER pipeline_key_guard BEFORE UPDATE OR DELETE ON registry_pipelinekey
    FOR EACH ROW EXECUTE FUNCTION pipeline_key_guard();

CREATE FUNCTION pipeline_signature_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'a pipeline''s signature never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NOT EXISTS (
        SELECT 1 FROM registry_version v
        JOIN registry_adapter a ON a.id = v.adapter_id
        JOIN registry_pipelinekey k ON k.tenant_id = a.tenant_id
        WHERE v.id = NEW.version_id AND k.id = NEW.key_id AND k.revoked_at IS NULL
          AND v.state IN ('uploading', 'validating', 'candidate'))
    THEN
        RAISE EXCEPTION 'a pipeline signs with a trusted key of its own tenant, and before the decision'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER pipeline_signature_guard BEFORE INSERT OR UPDATE OR DELETE ON registry_pipelinesignature
    FOR EACH ROW EXECUTE FUNCTION pipeline_signature_guard();

GRANT UPDATE (valid_to, revoked_at, revoked_reason) ON registry_signingkey TO lorekeeper_app;
GRANT UPDATE (key_id, bundle, attestation, resigned_at) ON registry_signature TO lorekeeper_app;
GRANT UPDATE (require_pipeline_signature) ON registry_tenant TO lorekeeper_app;
GRANT SELECT, INSERT ON registry_pipelinekey, registry_pipelinesignature TO lorekeeper_app;
GRANT UPDATE (revoked_at, revoked_reason) ON registry_pipelinekey TO lorekeeper_app;
GRANT USAGE ON SEQUENCE registry_pipelinekey_id_seq, registry_pipelinesignature_id_seq TO lorekeeper_app;
