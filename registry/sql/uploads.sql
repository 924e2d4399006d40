-- What was stored is never taken for other bytes, and a version goes on only with all of its own.
CREATE FUNCTION artifact_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'an artifact is never deleted' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (NEW.id, NEW.tenant_id, NEW.sha256, NEW.created_at)
        IS DISTINCT FROM (OLD.id, OLD.tenant_id, OLD.sha256, OLD.created_at)
    THEN
        RAISE EXCEPTION 'an artifact is immutable' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF OLD.stored_at IS NOT NULL AND NEW.size <> OLD.size THEN
        RAISE EXCEPTION 'the size of stored bytes never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER artifact_guard BEFORE UPDATE OR DELETE ON registry_artifact
    FOR EACH ROW EXECUTE FUNCTION artifact_guard();

CREATE FUNCTION version_complete_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM registry_versionfile f JOIN registry_artifact a ON a.id = f.artifact_id
        WHERE f.version_id = NEW.id AND a.stored_at IS NULL)
    THEN
        RAISE EXCEPTION 'a version is validated only when all of its files are stored'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER version_complete_guard BEFORE UPDATE OF state ON registry_version
    FOR EACH ROW WHEN (OLD.state = 'uploading' AND NEW.state = 'validating')
    EXECUTE FUNCTION version_complete_guard();

GRANT SELECT, INSERT, DELETE, UPDATE (digests) ON registry_uploadinparts TO lorekeeper_app;
DO $$
BEGIN
    EXECUTE format(
        'GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('registry_uploadinparts', 'id')
    );
END $$;
