-- Answers are kept, given again, and forgotten after a day; none is ever changed.
GRANT SELECT, INSERT, DELETE ON registry_idempotentanswer TO lorekeeper_app;
DO $$
BEGIN
    EXECUTE format(
        'GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence('registry_idempotentanswer', 'id')
    );
END $$;
