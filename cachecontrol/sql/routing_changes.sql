-- What nodes and residencies add to the feed of changes. Heartbeats set other columns than these: they wake nobody.
CREATE FUNCTION routing_note_node() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note('nodes', COALESCE(NEW.name, OLD.name), true);
    RETURN NULL;
END $$;
DROP TRIGGER routing_node_made ON cachecontrol_node;
DROP TRIGGER routing_node_changed ON cachecontrol_node;
CREATE TRIGGER routing_node_made AFTER INSERT OR DELETE ON cachecontrol_node
    FOR EACH ROW EXECUTE FUNCTION routing_note_node();
CREATE TRIGGER routing_node_changed
    AFTER UPDATE OF status, engine_healthy, engine_kind, engine_url, base_revision_id, max_rank, gpu_slots,
                    draining, poisoned, recycling_since
    ON cachecontrol_node
    FOR EACH ROW WHEN (
        (OLD.status, OLD.engine_healthy, OLD.engine_kind, OLD.engine_url, OLD.base_revision_id, OLD.max_rank,
         OLD.gpu_slots, OLD.draining, OLD.poisoned, OLD.recycling_since)
        IS DISTINCT FROM
        (NEW.status, NEW.engine_healthy, NEW.engine_kind, NEW.engine_url, NEW.base_revision_id, NEW.max_rank,
         NEW.gpu_slots, NEW.draining, NEW.poisoned, NEW.recycling_since))
    EXECUTE FUNCTION routing_note_node();

-- A new estimate of a tier is found by the poll.
CREATE FUNCTION routing_note_residency() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note('residencies', COALESCE(NEW.version_id, OLD.version_id)::text, TG_ARGV[0]::boolean);
    RETURN NULL;
END $$;
DROP TRIGGER routing_residency_made ON cachecontrol_residency;
DROP TRIGGER routing_residency_changed ON cachecontrol_residency;
CREATE TRIGGER routing_residency_made AFTER INSERT OR DELETE ON cachecontrol_residency
    FOR EACH ROW EXECUTE FUNCTION routing_note_residency('true');
CREATE TRIGGER routing_residency_changed AFTER UPDATE OF desired, observed, generation ON cachecontrol_residency
    FOR EACH ROW WHEN ((OLD.desired, OLD.observed, OLD.generation)
                       IS DISTINCT FROM (NEW.desired, NEW.observed, NEW.generation))
    EXECUTE FUNCTION routing_note_residency('true');
CREATE TRIGGER routing_residency_estimated AFTER UPDATE OF tier ON cachecontrol_residency
    FOR EACH ROW WHEN (OLD.tier IS DISTINCT FROM NEW.tier) EXECUTE FUNCTION routing_note_residency('false');

-- The last statement triggers are gone.
DROP FUNCTION routing_changed();
