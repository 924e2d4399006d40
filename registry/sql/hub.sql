-- Drafts that came over the hub-compatible API.

-- A sealed commit stands for its content: clients keep it under its id for ever.
CREATE FUNCTION hub_commit_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.sealed_at IS NOT NULL THEN
        RAISE EXCEPTION 'a sealed commit never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hub_commit_guard BEFORE UPDATE ON registry_hubcommit
    FOR EACH ROW EXECUTE FUNCTION hub_commit_guard();

CREATE FUNCTION hub_file_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' OR (SELECT sealed_at FROM registry_hubcommit WHERE id = NEW.commit_id) IS NOT NULL THEN
        RAISE EXCEPTION 'the files of a commit never change' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hub_file_guard BEFORE INSERT OR UPDATE ON registry_hubfile
    FOR EACH ROW EXECUTE FUNCTION hub_file_guard();

GRANT SELECT, INSERT, DELETE ON registry_hubdraft, registry_hubcommit, registry_hubfile TO lorekeeper_app;
GRANT UPDATE (head_id, changed_at) ON registry_hubdraft TO lorekeeper_app;
GRANT UPDATE (parent, title, description, tree_digest, sealed_at) ON registry_hubcommit TO lorekeeper_app;
GRANT USAGE ON SEQUENCE registry_hubdraft_id_seq, registry_hubfile_id_seq TO lorekeeper_app;
