-- What an alias stood for when: one row for each time in which its target and its split were the same, written when the
-- transaction that changed them commits. Nobody but this function writes them.

-- The clock is read as late as can be; gateways hear of the commit some milliseconds later. A clock that steps back, or
-- stands, makes an interval of a microsecond, never one that ends before it begins.
CREATE FUNCTION alias_interval_write(p_alias bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_alias releases_alias%ROWTYPE;
    v_split releases_aliassplit%ROWTYPE;
    v_open releases_aliasinterval%ROWTYPE;
    v_new releases_aliasinterval%ROWTYPE;
BEGIN
    -- Who changes the split alone takes turns here, too.
    SELECT * INTO v_alias FROM releases_alias WHERE id = p_alias FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO v_split FROM releases_aliassplit WHERE alias_id = p_alias;
    SELECT * INTO v_open FROM releases_aliasinterval WHERE alias_id = p_alias AND valid_to IS NULL;
    v_new := v_open;
    SELECT id INTO v_new.revision_id FROM releases_aliasrevision WHERE alias_id = p_alias AND number = v_alias.revision;
    v_new.alias_id := p_alias;
    v_new.version_id := v_alias.version_id;
    v_new.candidate_id := v_split.candidate_id;
    v_new.basis_points := coalesce(v_split.basis_points, 0);
    v_new.salt := coalesce(v_split.salt, '');
    v_new.allow := coalesce(v_split.allow, '{}');
    v_new.deny := coalesce(v_split.deny, '{}');
    v_new.shadow_id := v_split.shadow_id;
    v_new.shadow_basis_points := coalesce(v_split.shadow_basis_points, 0);
    IF v_new IS NOT DISTINCT FROM v_open THEN
        RETURN;
    END IF;
    v_new.valid_from := greatest(clock_timestamp(), v_open.valid_from + interval '1 microsecond');
    v_new.release_id := alias_interval_release(v_alias, v_split);
    UPDATE releases_aliasinterval SET valid_to = v_new.valid_from WHERE id = v_open.id;
    INSERT INTO releases_aliasinterval (
        alias_id, revision_id, version_id, valid_from, candidate_id, basis_points, salt, allow, deny, shadow_id,
        shadow_basis_points, release_id)
    VALUES (
        v_new.alias_id, v_new.revision_id, v_new.version_id, v_new.valid_from, v_new.candidate_id, v_new.basis_points,
        v_new.salt, v_new.allow, v_new.deny, v_new.shadow_id, v_new.shadow_basis_points, v_new.release_id);
END $$;

-- The release whose split this is, or that moved the alias to this revision: an alias with an active release is moved by
-- nothing but its promotion, so that this one's revision is the next.
CREATE FUNCTION alias_interval_release(a releases_alias, s releases_aliassplit) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT r.id FROM releases_release r
    WHERE r.alias_id = a.id
        AND CASE WHEN s.id IS NULL
            THEN r.candidate_id = a.version_id AND r.stable_revision + 1 = a.revision AND r.state = 'promoted'
            ELSE r.candidate_id = s.candidate_id AND NOT release_is_over(r.state) END
$$;

CREATE FUNCTION alias_interval_of_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM alias_interval_write(NEW.id);
    RETURN NULL;
END $$;
CREATE FUNCTION alias_interval_of_split() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM alias_interval_write(coalesce(NEW.alias_id, OLD.alias_id));
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER alias_interval_of_alias AFTER INSERT OR UPDATE ON releases_alias
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION alias_interval_of_alias();
CREATE CONSTRAINT TRIGGER alias_interval_of_split AFTER INSERT OR UPDATE OR DELETE ON releases_aliassplit
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION alias_interval_of_split();

-- An interval ends once and changes no more; the next one begins where the last one ended.
CREATE FUNCTION alias_interval_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_before releases_aliasinterval%ROWTYPE;
BEGIN
    IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND (
        OLD.valid_to IS NOT NULL OR NEW.valid_to IS NULL
        OR to_jsonb(NEW) - 'valid_to' IS DISTINCT FROM to_jsonb(OLD) - 'valid_to'))
    THEN
        RAISE EXCEPTION 'an interval of an alias ends once and changes no more'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_interval_append_only';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        RETURN NEW;
    END IF;
    SELECT * INTO v_before FROM releases_aliasinterval WHERE alias_id = NEW.alias_id ORDER BY valid_from DESC LIMIT 1;
    IF FOUND AND v_before.valid_to IS DISTINCT FROM NEW.valid_from THEN
        RAISE EXCEPTION 'an interval of an alias begins where the one before ended'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_interval_contiguous';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER alias_interval_guard BEFORE INSERT OR UPDATE OR DELETE ON releases_aliasinterval
    FOR EACH ROW EXECUTE FUNCTION alias_interval_guard();

REVOKE ALL ON FUNCTION alias_interval_write(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION alias_interval_write(bigint) TO lorekeeper_app;
GRANT SELECT ON releases_aliasinterval TO lorekeeper_app;
