-- Invariant 2: only an approved (or yanked, which goes on serving), signed version is wanted on a node, and only on one
-- of its own base revision and with room for its rank. The share lock makes a wish and a revocation take turns.
CREATE FUNCTION residency_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v registry_version%ROWTYPE;
    n cachecontrol_node%ROWTYPE;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.id, NEW.node_id, NEW.version_id) IS DISTINCT FROM (OLD.id, OLD.node_id, OLD.version_id) THEN
            RAISE EXCEPTION 'a residency keeps its node and its version'
                USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'residency_keeps_its_key';
        END IF;
        IF NEW.generation < OLD.generation OR NEW.acted_generation < OLD.acted_generation THEN
            RAISE EXCEPTION 'the generations of a residency never fall'
                USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'residency_generation_grows';
        END IF;
    END IF;
    IF NEW.desired = 'gpu' AND (TG_OP = 'INSERT' OR OLD.desired <> 'gpu') THEN
        SELECT * INTO v FROM registry_version WHERE id = NEW.version_id FOR SHARE;
        SELECT * INTO n FROM cachecontrol_node WHERE id = NEW.node_id;
        IF v.state NOT IN ('approved', 'yanked')
           OR NOT EXISTS (SELECT 1 FROM registry_signature s WHERE s.version_id = v.id)
        THEN
            RAISE EXCEPTION 'a version that is % is not loaded', v.state
                USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'residency_version_servable';
        END IF;
        IF v.rank > n.max_rank
           OR (SELECT digest FROM registry_basemodelrevision WHERE id = v.base_revision_id)
              <> (SELECT digest FROM registry_basemodelrevision WHERE id = n.base_revision_id)
        THEN
            RAISE EXCEPTION 'the node has another base revision or too few ranks for this version'
                USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'residency_version_fits';
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER residency_guard BEFORE INSERT OR UPDATE ON cachecontrol_residency
    FOR EACH ROW EXECUTE FUNCTION residency_guard();
