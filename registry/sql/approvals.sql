-- Approvals that a change voids, policies, comments, retention: what a bug in the code above must not be able to break.

-- Approvals from before they named the base revision.
ALTER TABLE registry_approval DISABLE TRIGGER approval_guard;
UPDATE registry_approval a SET base_digest = r.digest
    FROM registry_version v JOIN registry_basemodelrevision r ON r.id = v.base_revision_id
    WHERE v.id = a.version_id;
ALTER TABLE registry_approval ENABLE TRIGGER approval_guard;

-- Invariant 1: what a version is never changes; its state moves only along the allowed moves; it is never deleted.
CREATE OR REPLACE FUNCTION version_guard() RETURNS trigger LANGUAGE plpgsql AS $$
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
    -- A candidate may be validated anew, which voids its approvals; what was decided stands on the report it had.
    IF OLD.state NOT IN ('uploading', 'validating', 'candidate')
       AND NEW.validation_digest IS DISTINCT FROM OLD.validation_digest
    THEN
        RAISE EXCEPTION 'the report that a version was decided on never changes'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF OLD.purged_at IS NOT NULL AND NEW.purged_at IS NULL THEN
        RAISE EXCEPTION 'a purged version stays purged' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state || '>' || NEW.state) NOT IN (
        'uploading>validating', 'uploading>rejected', 'validating>rejected', 'validating>candidate',
        'candidate>approved', 'candidate>rejected', 'candidate>revoked',
        'approved>yanked', 'approved>revoked', 'yanked>revoked')
    THEN
        RAISE EXCEPTION 'a version does not move from % to %', OLD.state, NEW.state
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.state = 'approved' AND OLD.state <> 'approved' THEN
        PERFORM version_may_be_approved(NEW);
    END IF;
    RETURN NEW;
END $$;

-- Invariants 2 and 3: approved means signed, over the very bytes of this version, and approved by somebody for what it
-- is now. How many it takes is the tenant's policy, which changes; that it takes one never does.
CREATE FUNCTION version_may_be_approved(v registry_version) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF v.purged_at IS NOT NULL THEN
        RAISE EXCEPTION 'a purged version is not approved' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NOT EXISTS (
        SELECT 1 FROM registry_signature s JOIN registry_signingkey k ON k.id = s.key_id
        WHERE s.version_id = v.id AND s.root_digest = v.root_digest AND k.revoked_at IS NULL)
    THEN
        RAISE EXCEPTION 'a version is approved only with its signature'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NOT EXISTS (
        SELECT 1 FROM registry_approval a WHERE a.version_id = v.id AND a.decision = 'approved'
        AND (a.root_digest, a.validation_digest) = (v.root_digest, v.validation_digest))
    THEN
        RAISE EXCEPTION 'a version is approved only by somebody who approved what it is now'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
END $$;

-- Invariant 3: the uploader never approves, and an approval names the digests it approves. The lock makes an approval
-- and a new report of the same version take turns.
CREATE OR REPLACE FUNCTION approval_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v registry_version%ROWTYPE;
    v_base text;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'an approval never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT * INTO v FROM registry_version WHERE id = NEW.version_id FOR NO KEY UPDATE;
    SELECT digest INTO v_base FROM registry_basemodelrevision WHERE id = v.base_revision_id;
    IF v.uploader_id = NEW.reviewer_id THEN
        RAISE EXCEPTION 'the uploader never approves' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF v.state <> 'candidate' THEN
        RAISE EXCEPTION 'only a candidate is decided on' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (v.root_digest, v.validation_digest, v_base)
        IS DISTINCT FROM (NEW.root_digest, NEW.validation_digest, NEW.base_digest)
    THEN
        RAISE EXCEPTION 'an approval names the digests it approves' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION comment_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a comment never changes' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER comment_guard BEFORE UPDATE OR DELETE ON registry_versioncomment
    FOR EACH ROW EXECUTE FUNCTION comment_guard();

-- A revocation is told by name, so that a gateway stops at once and before it has read everything again.
CREATE FUNCTION routing_version_revoked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('lorekeeper_routing', 'revoked:' || NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER routing_version_revoked AFTER UPDATE OF state ON registry_version
    FOR EACH ROW WHEN (NEW.state = 'revoked' AND OLD.state <> 'revoked') EXECUTE FUNCTION routing_version_revoked();

GRANT SELECT, INSERT ON registry_versioncomment, registry_approvalpolicy, registry_retentionpolicy TO lorekeeper_app;
GRANT UPDATE (required, roles, only_people, required_people, validity_days, updated_at)
    ON registry_approvalpolicy TO lorekeeper_app;
GRANT UPDATE (keep_days, automatic, applied_at, swept_at, updated_at) ON registry_retentionpolicy TO lorekeeper_app;
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['registry_versioncomment', 'registry_approvalpolicy', 'registry_retentionpolicy'] LOOP
        EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('public.' || t, 'id'));
    END LOOP;
END $$;
