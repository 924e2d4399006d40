GRANT SELECT, INSERT, UPDATE ON cachecontrol_node TO lorekeeper_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON cachecontrol_residency TO lorekeeper_app;
GRANT SELECT ON gateway_request TO lorekeeper_app;
GRANT INSERT ON gateway_request TO lorekeeper_gateway;
GRANT SELECT ON routing_nodes, routing_residencies TO lorekeeper_gateway;
DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('cachecontrol_node', 'id'));
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('cachecontrol_residency', 'id'));
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_gateway', pg_get_serial_sequence('gateway_request', 'id'));
END $$;
