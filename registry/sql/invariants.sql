-- What a bug in the code above must not be able to break.

-- Invariant 1: what a version is never changes; its state moves only along the allowed moves; it is never deleted.
CREATE FUNCTION version_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'a version is never deleted' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (NEW.id, NEW.adapter_id, NEW.name, NEW.base_revision_id, NEW.uploader_id, NEW.root_digest, NEW.engine_name,
        NEW.lineage, NEW.created_at)
        IS DISTINCT FROM
       (OLD.id, OLD.adapter_id, OLD.name, OLD.base_revision_id, OLD.uploader_id, OLD.root_digest, OLD.engine_name,
        OLD.lineage, OLD.created_at)
    THEN
        RAISE EXCEPTION 'a version is immutable' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF OLD.state NOT IN ('uploading', 'validating')
       AND (NEW.rank, NEW.target_modules) IS DISTINCT FROM (OLD.rank, OLD.target_modules)
    THEN
        RAISE EXCEPTION 'what was read from a version''s tensors never changes'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state || '>' || NEW.state) NOT IN (
        'uploading>validating', 'uploading>rejected', 'validating>rejected', 'validating>candidate',
        'candidate>approved', 'candidate>rejected', 'candidate>revoked',
        'approved>yanked', 'approved>revoked', 'yanked>revoked')
    THEN
        RAISE EXCEPTION 'a version does not move from % to %', OLD.state, NEW.state
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    -- Invariant 2: approved means signed, over the very bytes of this version.
    IF NEW.state = 'approved' AND OLD.state <> 'approved' AND NOT EXISTS (
        SELECT 1 FROM registry_signature s WHERE s.version_id = NEW.id AND s.root_digest = NEW.root_digest)
    THEN
        RAISE EXCEPTION 'a version is approved only with its signature'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER version_guard BEFORE UPDATE OR DELETE ON registry_version
    FOR EACH ROW EXECUTE FUNCTION version_guard();

CREATE FUNCTION version_file_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'the files of a version never change' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (SELECT state FROM registry_version WHERE id = NEW.version_id) <> 'uploading' THEN
        RAISE EXCEPTION 'files are named when the upload starts' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER version_file_guard BEFORE INSERT OR UPDATE OR DELETE ON registry_versionfile
    FOR EACH ROW EXECUTE FUNCTION version_file_guard();

-- Invariant 3: the uploader never approves, and an approval names the digests it approves.
CREATE FUNCTION approval_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v registry_version%ROWTYPE;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'an approval never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT * INTO v FROM registry_version WHERE id = NEW.version_id;
    IF v.uploader_id = NEW.reviewer_id THEN
        RAISE EXCEPTION 'the uploader never approves' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (v.root_digest, v.validation_digest) IS DISTINCT FROM (NEW.root_digest, NEW.validation_digest) THEN
        RAISE EXCEPTION 'an approval names the digests it approves' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approval_guard BEFORE INSERT OR UPDATE OR DELETE ON registry_approval
    FOR EACH ROW EXECUTE FUNCTION approval_guard();

CREATE FUNCTION signature_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a signature never changes' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER signature_guard BEFORE UPDATE OR DELETE ON registry_signature
    FOR EACH ROW EXECUTE FUNCTION signature_guard();
