-- An alias with a dot in its name is the default of an adapter, and stands for its versions alone. Names of adapters and
-- of other aliases have no dots.
CREATE FUNCTION alias_default_own() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.name <> (SELECT a.name || '.default' FROM registry_adapter a WHERE a.id = NEW.adapter_id) THEN
        RAISE EXCEPTION 'the default of an adapter stands for its versions'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_default_own';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER alias_default_own BEFORE INSERT OR UPDATE ON releases_alias
    FOR EACH ROW WHEN (NEW.name LIKE '%.%') EXECUTE FUNCTION alias_default_own();
