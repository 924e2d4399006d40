CREATE VIEW routing_aliases AS
    SELECT t.name::text AS tenant, a.name::text AS alias, a.version_id AS version_id, a.revision AS revision
    FROM releases_alias a
    JOIN registry_tenant t ON t.id = a.tenant_id;

CREATE TRIGGER routing_alias_changed AFTER INSERT OR UPDATE OR DELETE ON releases_alias
    FOR EACH STATEMENT EXECUTE FUNCTION routing_changed('aliases');
