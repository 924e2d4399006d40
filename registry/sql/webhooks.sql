-- Webhooks: what holds whatever the code above does, and what the application's role may do.

-- A delivery says for ever what it said first, and comes to one end.
CREATE FUNCTION webhook_delivery_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.endpoint_id, NEW.event_id, NEW.kind, NEW.object_key, NEW.body, NEW.created_at)
        IS DISTINCT FROM (OLD.id, OLD.endpoint_id, OLD.event_id, OLD.kind, OLD.object_key, OLD.body, OLD.created_at)
    THEN
        RAISE EXCEPTION 'a delivery never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.state <> OLD.state AND OLD.state <> 'pending' THEN
        RAISE EXCEPTION 'a delivery does not move from % to %', OLD.state, NEW.state
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (NEW.state = 'pending') <> (NEW.ended_at IS NULL) THEN
        RAISE EXCEPTION 'a delivery has an end when it is delivered or parked'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER webhook_delivery_guard BEFORE UPDATE ON registry_webhookdelivery
    FOR EACH ROW EXECUTE FUNCTION webhook_delivery_guard();

-- What was told is never taken back: a cursor only goes on.
CREATE FUNCTION webhook_cursor_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.endpoint_id, NEW.chain) IS DISTINCT FROM (OLD.id, OLD.endpoint_id, OLD.chain) OR NEW.seq < OLD.seq
    THEN
        RAISE EXCEPTION 'a cursor only goes on' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER webhook_cursor_guard BEFORE UPDATE ON registry_webhookcursor
    FOR EACH ROW EXECUTE FUNCTION webhook_cursor_guard();

GRANT SELECT, INSERT, DELETE ON
    registry_webhookendpoint, registry_webhookcursor, registry_webhookdelivery, registry_webhookattempt TO lorekeeper_app;
GRANT UPDATE (url, kinds, secret, previous_secret, previous_until, failing_since, disabled_at, disabled_reason)
    ON registry_webhookendpoint TO lorekeeper_app;
GRANT UPDATE (seq) ON registry_webhookcursor TO lorekeeper_app;
GRANT UPDATE (state, tries, next_at, ended_at, again_of_id) ON registry_webhookdelivery TO lorekeeper_app;
GRANT USAGE ON SEQUENCE
    registry_webhookcursor_id_seq, registry_webhookdelivery_id_seq, registry_webhookattempt_id_seq TO lorekeeper_app;
