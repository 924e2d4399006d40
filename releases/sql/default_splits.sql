-- The default of an adapter stands for its versions alone (default_aliases.sql), so only they answer beside it, too. Which
-- adapter it is the default of never changes, nor which one a version belongs to: nothing is locked.
CREATE FUNCTION alias_split_default_own() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM releases_alias a JOIN registry_version v ON v.id IN (NEW.candidate_id, NEW.shadow_id)
        WHERE a.id = NEW.alias_id AND a.name LIKE '%.%' AND v.adapter_id <> a.adapter_id)
    THEN
        RAISE EXCEPTION 'the default of an adapter stands for its versions'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_split_default_own';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER alias_split_default_own BEFORE INSERT OR UPDATE ON releases_aliassplit
    FOR EACH ROW EXECUTE FUNCTION alias_split_default_own();
