-- Invariant 2: only an approved, signed, unrevoked version of the same tenant and adapter is the target of an alias.
-- A rollback may go back to a yanked version (that is no new release), but only to one the alias pointed to before.
--
-- The share lock makes a move and a revocation of the same version take turns: whoever comes second sees the first.
CREATE FUNCTION alias_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_state text;
    v_adapter bigint;
    v_tenant bigint;
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

    SELECT state, adapter_id INTO v_state, v_adapter FROM registry_version WHERE id = NEW.version_id FOR SHARE;
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
    IF NEW.moved_by = 'rollback' AND NOT EXISTS (
        SELECT 1 FROM releases_aliasrevision r WHERE r.alias_id = NEW.id AND r.version_id = NEW.version_id)
    THEN
        RAISE EXCEPTION 'a rollback goes to a version that the alias pointed to before'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_rollback_goes_back';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER alias_guard BEFORE INSERT OR UPDATE ON releases_alias
    FOR EACH ROW EXECUTE FUNCTION alias_guard();

-- The history is append-only, has no gaps, and says what the alias said.
CREATE FUNCTION alias_revision_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_alias releases_alias%ROWTYPE;
    v_before releases_aliasrevision%ROWTYPE;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'the history of an alias never changes'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_history_append_only';
    END IF;
    SELECT * INTO v_alias FROM releases_alias WHERE id = NEW.alias_id FOR UPDATE;
    SELECT * INTO v_before FROM releases_aliasrevision WHERE alias_id = NEW.alias_id ORDER BY number DESC LIMIT 1;
    IF NEW.number <> coalesce(v_before.number, 0) + 1
       OR NEW.previous_version_id IS DISTINCT FROM v_before.version_id
       OR (NEW.number, NEW.version_id, NEW.kind) IS DISTINCT FROM (v_alias.revision, v_alias.version_id, v_alias.moved_by)
    THEN
        RAISE EXCEPTION 'revision % of the alias % does not follow on its history', NEW.number, v_alias.name
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_history_contiguous';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER alias_revision_guard BEFORE INSERT OR UPDATE OR DELETE ON releases_aliasrevision
    FOR EACH ROW EXECUTE FUNCTION alias_revision_guard();

-- No move without its row of history, at commit at the latest.
CREATE FUNCTION alias_has_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM releases_aliasrevision r WHERE r.alias_id = NEW.id AND r.number = NEW.revision)
    THEN
        RAISE EXCEPTION 'revision % of the alias % has no row in its history', NEW.revision, NEW.name
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_has_history';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER alias_has_history AFTER INSERT OR UPDATE ON releases_alias
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION alias_has_history();
