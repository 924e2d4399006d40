-- Protected aliases: where a release is needed, a promoted one moves the alias, or a rollback; and only the release that
-- is active splits its requests. Looked at when the transaction commits, which may move the release after the alias.
CREATE FUNCTION alias_moves_by_release() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- An alias with an active release is moved by nothing but its promotion, so that this one's revision is the next.
    IF NEW.moved_by <> 'rollback'
       AND EXISTS (SELECT 1 FROM releases_aliasprotection p WHERE p.alias_id = NEW.id AND p.needs_release)
       AND NOT EXISTS (
           SELECT 1 FROM releases_release r
           WHERE r.alias_id = NEW.id AND r.candidate_id = NEW.version_id AND r.stable_revision + 1 = NEW.revision
               AND r.state = 'promoted')
    THEN
        RAISE EXCEPTION 'a protected alias is moved by a promoted release'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_moves_by_release';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER alias_moves_by_release AFTER UPDATE ON releases_alias
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.version_id <> NEW.version_id)
    EXECUTE FUNCTION alias_moves_by_release();

CREATE FUNCTION alias_splits_by_release() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM releases_aliasprotection p WHERE p.alias_id = NEW.alias_id AND p.needs_release)
       AND EXISTS (SELECT 1 FROM releases_aliassplit s WHERE s.id = NEW.id)
       AND NOT EXISTS (
           SELECT 1 FROM releases_release r
           WHERE r.alias_id = NEW.alias_id AND r.candidate_id = NEW.candidate_id
               AND r.state <> 'pending' AND NOT release_is_over(r.state))
    THEN
        RAISE EXCEPTION 'the requests of a protected alias are split by its release'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_splits_by_release';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER alias_splits_by_release AFTER INSERT OR UPDATE ON releases_aliassplit
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION alias_splits_by_release();

GRANT SELECT, INSERT, DELETE ON releases_aliasprotection TO lorekeeper_app;
GRANT UPDATE (movers, needs_release, changed_at) ON releases_aliasprotection TO lorekeeper_app;
