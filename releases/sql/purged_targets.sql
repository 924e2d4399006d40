-- Invariant 2, as in invariants.sql, and: an alias does not point to a version whose files retention has removed.
CREATE OR REPLACE FUNCTION alias_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_state text;
    v_adapter bigint;
    v_tenant bigint;
    v_purged timestamptz;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.revision <> 1 OR NEW.moved_by <> 'set' THEN
            RAISE EXCEPTION 'an alias begins with revision 1 by being set'
                USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_begins_at_one';
        END IF;
    ELSE
        IF (NEW.id, NEW.tenant_id, NEW.name) IS DISTINCT FROM (OLD.id, OLD.tenant_id, OLD.name) THEN
            RAISE EXCEPTION 'an alias keeps its tenant and its name'
                USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_keeps_its_name';
        END IF;
        IF NEW.revision <> OLD.revision + 1 THEN
            RAISE EXCEPTION 'revision % does not follow on revision %', NEW.revision, OLD.revision
                USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_revision_contiguous';
        END IF;
    END IF;

    SELECT state, adapter_id, purged_at INTO v_state, v_adapter, v_purged FROM registry_version WHERE id = NEW.version_id FOR SHARE;
    SELECT tenant_id INTO v_tenant FROM registry_adapter WHERE id = v_adapter;
    IF v_adapter IS DISTINCT FROM NEW.adapter_id OR v_tenant IS DISTINCT FROM NEW.tenant_id THEN
        RAISE EXCEPTION 'an alias points to a version of its own tenant and adapter'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_target_own';
    END IF;
    IF NOT (v_state = 'approved' OR (v_state = 'yanked' AND NEW.moved_by = 'rollback'))
       OR NOT EXISTS (SELECT 1 FROM registry_signature s WHERE s.version_id = NEW.version_id)
    THEN
        RAISE EXCEPTION 'an alias does not point to a version that is %', v_state
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_target_servable';
    END IF;
    IF v_purged IS NOT NULL THEN
        RAISE EXCEPTION 'an alias does not point to a version whose files were removed'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_target_servable';
    END IF;
    IF NEW.moved_by = 'rollback' AND NOT EXISTS (
        SELECT 1 FROM releases_aliasrevision r WHERE r.alias_id = NEW.id AND r.version_id = NEW.version_id)
    THEN
        RAISE EXCEPTION 'a rollback goes to a version that the alias pointed to before'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_rollback_goes_back';
    END IF;
    RETURN NEW;
END $$;
