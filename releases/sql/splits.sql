-- Invariant 2 for candidates and shadows: approved, signed, with their files, of the alias's tenant and base model. The
-- locks make a split take turns with a move of its alias and with a withdrawal of its versions.
CREATE FUNCTION alias_split_target_fits(target uuid, tenant bigint, base_model bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    v registry_version%ROWTYPE;
BEGIN
    SELECT * INTO v FROM registry_version WHERE id = target FOR SHARE;
    RETURN v.state = 'approved' AND v.purged_at IS NULL
        AND EXISTS (SELECT 1 FROM registry_signature s WHERE s.version_id = v.id)
        AND EXISTS (
            SELECT 1 FROM registry_adapter a
            WHERE a.id = v.adapter_id AND a.tenant_id = tenant AND a.base_model_id = base_model);
END $$;

CREATE FUNCTION alias_split_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_alias releases_alias%ROWTYPE;
    v_base bigint;
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.alias_id <> OLD.alias_id THEN
        RAISE EXCEPTION 'a split keeps its alias'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_split_keeps_its_alias';
    END IF;
    SELECT * INTO v_alias FROM releases_alias WHERE id = NEW.alias_id FOR SHARE;
    SELECT base_model_id INTO v_base FROM registry_adapter WHERE id = v_alias.adapter_id;
    IF v_alias.version_id IN (NEW.candidate_id, NEW.shadow_id) THEN
        RAISE EXCEPTION 'the candidate of an alias is not the version that it points to'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_split_target_differs';
    END IF;
    IF NOT alias_split_target_fits(NEW.candidate_id, v_alias.tenant_id, v_base)
       OR (NEW.shadow_id IS NOT NULL AND NOT alias_split_target_fits(NEW.shadow_id, v_alias.tenant_id, v_base))
    THEN
        RAISE EXCEPTION 'the candidate of an alias is an approved version of its tenant and base model'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_split_target_servable';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER alias_split_guard BEFORE INSERT OR UPDATE ON releases_aliassplit
    FOR EACH ROW EXECUTE FUNCTION alias_split_guard();

-- What was compared with one version says nothing about another.
CREATE FUNCTION alias_moves_unsplit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM releases_aliassplit s WHERE s.alias_id = NEW.id) THEN
        RAISE EXCEPTION 'an alias that moves has no split any more'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_moves_unsplit';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER alias_moves_unsplit BEFORE UPDATE OF version_id ON releases_alias
    FOR EACH ROW WHEN (OLD.version_id <> NEW.version_id) EXECUTE FUNCTION alias_moves_unsplit();

CREATE OR REPLACE VIEW routing_aliases AS
    SELECT t.name::text AS tenant, a.name::text AS alias, a.version_id AS version_id, a.revision AS revision,
           s.candidate_id AS candidate_id, s.basis_points::int AS basis_points, s.salt::text AS salt,
           s.allow::text[] AS allow, s.deny::text[] AS deny,
           s.shadow_id AS shadow_id, s.shadow_basis_points::int AS shadow_basis_points
    FROM releases_alias a
    JOIN registry_tenant t ON t.id = a.tenant_id
    LEFT JOIN releases_aliassplit s ON s.alias_id = a.id;

-- What aliases and their splits add to the feed of changes.
CREATE FUNCTION routing_note_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note('aliases', t.name || '/' || COALESCE(NEW.name, OLD.name), true)
    FROM registry_tenant t WHERE t.id = COALESCE(NEW.tenant_id, OLD.tenant_id);
    RETURN NULL;
END $$;
CREATE FUNCTION routing_note_split() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note('aliases', t.name || '/' || a.name, true)
    FROM releases_alias a JOIN registry_tenant t ON t.id = a.tenant_id
    WHERE a.id = COALESCE(NEW.alias_id, OLD.alias_id);
    RETURN NULL;
END $$;
DROP TRIGGER routing_alias_changed ON releases_alias;
CREATE TRIGGER routing_alias_changed AFTER INSERT OR UPDATE OR DELETE ON releases_alias
    FOR EACH ROW EXECUTE FUNCTION routing_note_alias();
CREATE TRIGGER routing_split_changed AFTER INSERT OR UPDATE OR DELETE ON releases_aliassplit
    FOR EACH ROW EXECUTE FUNCTION routing_note_split();

GRANT SELECT, INSERT, UPDATE, DELETE ON releases_aliassplit TO lorekeeper_app;
DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('releases_aliassplit', 'id'));
END $$;
