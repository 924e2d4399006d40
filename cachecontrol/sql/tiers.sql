-- Invariant 2 with a third wish: files on the disk alone. Demoting asks for nothing more than before, so it is always
-- allowed: what was withdrawn meanwhile leaves anyway. The share lock makes a wish and a revocation take turns.
CREATE OR REPLACE FUNCTION residency_guard() RETURNS trigger LANGUAGE plpgsql AS $$
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
    IF (NEW.desired = 'gpu' AND (TG_OP = 'INSERT' OR OLD.desired <> 'gpu'))
       OR (NEW.desired = 'disk' AND (TG_OP = 'INSERT' OR OLD.desired = 'absent'))
    THEN
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

-- What is not wanted in the engine any more is draining from the moment that it isn't, whatever the reconciler has come
-- to; and so is everything on a node that is being emptied or restarted, or whose answers can't be trusted. What is in
-- an engine that isn't well is not loaded until it is well again.
CREATE OR REPLACE VIEW routing_residencies AS
    SELECT n.name::text AS node, c.version_id AS version_id, v.engine_name::text AS engine_name,
           (CASE WHEN c.desired <> 'gpu' OR n.draining OR n.poisoned OR n.recycling_since IS NOT NULL THEN 'draining'
                 WHEN c.observed = 'loaded' AND NOT n.engine_healthy THEN 'loading'
                 ELSE c.observed END)::text AS observed,
           c.generation AS generation, c.tier::text AS tier
    FROM cachecontrol_residency c
    JOIN cachecontrol_node n ON n.id = c.node_id
    JOIN registry_version v ON v.id = c.version_id
    WHERE c.observed IN ('loading', 'loaded', 'draining');

-- Heartbeats set other columns than these: they wake nobody. Nor does a new estimate of a tier.
DROP TRIGGER routing_node_changed ON cachecontrol_node;
CREATE TRIGGER routing_node_changed
    AFTER UPDATE OF status, engine_healthy, engine_kind, engine_url, base_revision_id, max_rank, gpu_slots,
                    draining, poisoned, recycling_since
    ON cachecontrol_node
    FOR EACH STATEMENT EXECUTE FUNCTION routing_changed('nodes');
