CREATE VIEW routing_nodes AS
    SELECT n.name::text AS node, n.engine_kind::text AS engine_kind, n.engine_url::text AS engine_url,
           r.digest::text AS base_digest, b.name::text AS base_model, n.max_rank AS max_rank,
           n.gpu_slots AS gpu_slots, n.status::text AS status
    FROM cachecontrol_node n
    JOIN registry_basemodelrevision r ON r.id = n.base_revision_id
    JOIN registry_basemodel b ON b.id = r.base_model_id;

-- What is not wanted any more is draining from the moment that it isn't, whatever the reconciler has come to. What is in
-- an engine that isn't well (it is away, or its answers can't be trusted) is not loaded until it is well again.
CREATE VIEW routing_residencies AS
    SELECT n.name::text AS node, c.version_id AS version_id, v.engine_name::text AS engine_name,
           (CASE WHEN c.desired = 'absent' THEN 'draining'
                 WHEN c.observed = 'loaded' AND NOT n.engine_healthy THEN 'loading'
                 ELSE c.observed END)::text AS observed,
           c.generation AS generation
    FROM cachecontrol_residency c
    JOIN cachecontrol_node n ON n.id = c.node_id
    JOIN registry_version v ON v.id = c.version_id
    WHERE c.observed IN ('loading', 'loaded', 'draining');

-- Heartbeats set other columns than these: they wake nobody.
CREATE TRIGGER routing_node_made AFTER INSERT OR DELETE ON cachecontrol_node
    FOR EACH STATEMENT EXECUTE FUNCTION routing_changed('nodes');
CREATE TRIGGER routing_node_changed
    AFTER UPDATE OF status, engine_healthy, engine_kind, engine_url, base_revision_id, max_rank, gpu_slots
    ON cachecontrol_node
    FOR EACH STATEMENT EXECUTE FUNCTION routing_changed('nodes');
CREATE TRIGGER routing_residency_made AFTER INSERT OR DELETE ON cachecontrol_residency
    FOR EACH STATEMENT EXECUTE FUNCTION routing_changed('residencies');
CREATE TRIGGER routing_residency_changed AFTER UPDATE OF desired, observed, generation ON cachecontrol_residency
    FOR EACH STATEMENT EXECUTE FUNCTION routing_changed('residencies');
