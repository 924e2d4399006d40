-- Aliases that other tenants may call.

-- In a tenant a name is its own alias or one that it was granted. Who grants takes turns with whoever makes an alias in
-- that tenant, by the tenant's row. Names with a dot are never granted.
CREATE FUNCTION alias_name_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM registry_tenant t WHERE t.id = NEW.tenant_id FOR KEY SHARE;
    IF EXISTS (SELECT 1 FROM releases_aliasgrant g WHERE g.tenant_id = NEW.tenant_id AND g.name = NEW.name) THEN
        RAISE EXCEPTION 'the tenant calls another alias by this name'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_name_free';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER alias_name_guard BEFORE INSERT ON releases_alias
    FOR EACH ROW WHEN (NEW.name NOT LIKE '%.%') EXECUTE FUNCTION alias_name_guard();

CREATE FUNCTION alias_grant_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'a grant ends, it does not change'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_grant_changes_not';
    END IF;
    IF NEW.name LIKE '%.%' THEN
        RAISE EXCEPTION 'a name with a dot is an adapter''s default'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_name_free';
    END IF;
    IF EXISTS (SELECT 1 FROM releases_alias a WHERE a.id = NEW.alias_id AND a.tenant_id = NEW.tenant_id) THEN
        RAISE EXCEPTION 'an alias is not granted to its own tenant'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_grant_to_another';
    END IF;
    PERFORM FROM registry_tenant t WHERE t.id = NEW.tenant_id FOR UPDATE;
    IF EXISTS (SELECT 1 FROM releases_alias a WHERE a.tenant_id = NEW.tenant_id AND a.name = NEW.name) THEN
        RAISE EXCEPTION 'the tenant has an alias of this name'
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'alias_name_free';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER alias_grant_guard BEFORE INSERT OR UPDATE ON releases_aliasgrant
    FOR EACH ROW EXECUTE FUNCTION alias_grant_guard();

-- One row for each name by which a tenant may call an alias; `owner` is the tenant that the alias and its versions
-- belong to, which for its own aliases is the tenant itself.
CREATE VIEW routing_aliases AS
    WITH called AS (
        SELECT a.id, a.tenant_id, a.name FROM releases_alias a
        UNION ALL
        SELECT g.alias_id, g.tenant_id, g.name FROM releases_aliasgrant g
    )
    SELECT t.name::text AS tenant, c.name::text AS alias, a.version_id AS version_id, a.revision AS revision,
           s.candidate_id AS candidate_id, s.basis_points::int AS basis_points, s.salt::text AS salt,
           s.allow::text[] AS allow, s.deny::text[] AS deny,
           s.shadow_id AS shadow_id, s.shadow_basis_points::int AS shadow_basis_points, o.name::text AS owner
    FROM called c
    JOIN releases_alias a ON a.id = c.id
    JOIN registry_tenant t ON t.id = c.tenant_id
    JOIN registry_tenant o ON o.id = a.tenant_id
    LEFT JOIN releases_aliassplit s ON s.alias_id = a.id;
GRANT SELECT ON routing_aliases TO lorekeeper_gateway;

-- A change of an alias is one of every name by which it is called.
CREATE FUNCTION routing_note_called(p_alias bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note('aliases', t.name || '/' || c.name, true)
    FROM (
        SELECT a.tenant_id, a.name FROM releases_alias a WHERE a.id = p_alias
        UNION ALL
        SELECT g.tenant_id, g.name FROM releases_aliasgrant g WHERE g.alias_id = p_alias
    ) c
    JOIN registry_tenant t ON t.id = c.tenant_id;
END $$;
CREATE OR REPLACE FUNCTION routing_note_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM routing_note('aliases', t.name || '/' || OLD.name, true) FROM registry_tenant t WHERE t.id = OLD.tenant_id;
    ELSE
        PERFORM routing_note_called(NEW.id);
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION routing_note_split() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note_called(COALESCE(NEW.alias_id, OLD.alias_id));
    RETURN NULL;
END $$;
CREATE FUNCTION routing_note_grant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note('aliases', t.name || '/' || COALESCE(NEW.name, OLD.name), true)
    FROM registry_tenant t WHERE t.id = COALESCE(NEW.tenant_id, OLD.tenant_id);
    RETURN NULL;
END $$;
CREATE TRIGGER routing_grant_changed AFTER INSERT OR DELETE ON releases_aliasgrant
    FOR EACH ROW EXECUTE FUNCTION routing_note_grant();

GRANT SELECT, INSERT, DELETE ON releases_aliasgrant TO lorekeeper_app;
DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('releases_aliasgrant', 'id'));
END $$;
