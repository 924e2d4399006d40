GRANT SELECT, INSERT, UPDATE ON releases_alias TO lorekeeper_app;
GRANT SELECT, INSERT ON releases_aliasrevision TO lorekeeper_app;
DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('releases_alias', 'id'));
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('releases_aliasrevision', 'id'));
END $$;
GRANT SELECT ON routing_aliases TO lorekeeper_gateway;
