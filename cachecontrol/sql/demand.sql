-- Which transaction wrote a record. Batches of several gateways commit in any order, so the records' own numbers say
-- nothing of what is still to come; a transaction below the oldest one that runs has written all that it ever will.
ALTER TABLE gateway_request ADD COLUMN written_by xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX gateway_request_written_by ON gateway_request (written_by);

-- An eviction is told once and stays told.
CREATE FUNCTION eviction_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the record of an eviction never changes'
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'eviction_append_only';
END $$;
CREATE TRIGGER eviction_guard BEFORE UPDATE OR DELETE ON cachecontrol_eviction
    FOR EACH ROW EXECUTE FUNCTION eviction_guard();

-- The end of a load is told by name, so that a gateway that waits for it need not read everything again first.
CREATE FUNCTION routing_version_loaded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('lorekeeper_routing', 'loaded:' || NEW.version_id);
    RETURN NULL;
END $$;
CREATE TRIGGER routing_version_loaded AFTER UPDATE OF observed ON cachecontrol_residency
    FOR EACH ROW WHEN (NEW.observed = 'loaded' AND OLD.observed <> 'loaded') EXECUTE FUNCTION routing_version_loaded();

GRANT SELECT, INSERT ON cachecontrol_eviction TO lorekeeper_app;
GRANT SELECT, INSERT, UPDATE ON cachecontrol_versionheat, cachecontrol_tenantheat, cachecontrol_heatcursor,
    cachecontrol_lease TO lorekeeper_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON cachecontrol_loadrequest, cachecontrol_loadfailure TO lorekeeper_app;
DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('cachecontrol_eviction', 'id'));
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('cachecontrol_loadrequest', 'id'));
END $$;
