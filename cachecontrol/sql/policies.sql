-- What a policy says never changes, it moves only along the allowed moves, and none is ever deleted: a roll-back finds
-- exactly what was approved.
CREATE FUNCTION cache_policy_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'a cache policy is never deleted'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'cache_policy_never_deleted';
    END IF;
    IF (NEW.id, NEW.base_model_id, NEW.number, NEW.text, NEW.document, NEW.digest, NEW.comment, NEW.proposed_by_id,
        NEW.proposed_at)
       IS DISTINCT FROM
       (OLD.id, OLD.base_model_id, OLD.number, OLD.text, OLD.document, OLD.digest, OLD.comment, OLD.proposed_by_id,
        OLD.proposed_at)
    THEN
        RAISE EXCEPTION 'what a cache policy says never changes'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'cache_policy_immutable';
    END IF;
    IF OLD.state <> 'proposed'
       AND (NEW.decided_by_id, NEW.decided_at, NEW.reason) IS DISTINCT FROM (OLD.decided_by_id, OLD.decided_at, OLD.reason)
    THEN
        RAISE EXCEPTION 'a cache policy is decided on once'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'cache_policy_decided_once';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state || '>' || NEW.state) NOT IN (
        'proposed>active', 'proposed>declined', 'active>superseded', 'superseded>active')
    THEN
        RAISE EXCEPTION 'a cache policy does not move from % to %', OLD.state, NEW.state
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'cache_policy_moves';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER cache_policy_guard BEFORE UPDATE OR DELETE ON cachecontrol_cachepolicy
    FOR EACH ROW EXECUTE FUNCTION cache_policy_guard();

-- A policy begins as a proposal: nobody can put one in force past the second pair of eyes.
CREATE FUNCTION cache_policy_begins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> 'proposed' THEN
        RAISE EXCEPTION 'a cache policy begins as a proposal'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'cache_policy_begins_proposed';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER cache_policy_begins BEFORE INSERT ON cachecontrol_cachepolicy
    FOR EACH ROW EXECUTE FUNCTION cache_policy_begins();

GRANT SELECT, INSERT ON cachecontrol_cachepolicy TO lorekeeper_app;
GRANT UPDATE (state, decided_by_id, decided_at, reason, activated_at) ON cachecontrol_cachepolicy TO lorekeeper_app;
DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('cachecontrol_cachepolicy', 'id'));
END $$;
