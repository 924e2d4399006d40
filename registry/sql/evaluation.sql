-- What a version was approved on never changes: after the decision a new report stands beside the old one.
CREATE FUNCTION version_report_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the report that a version was decided on never changes'
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER version_report_guard BEFORE UPDATE ON registry_version FOR EACH ROW
    WHEN (OLD.state NOT IN ('uploading', 'validating', 'candidate')
          AND NEW.validation_digest IS DISTINCT FROM OLD.validation_digest)
    EXECUTE FUNCTION version_report_guard();

-- A report is evidence: it comes, and stays as it is.
CREATE FUNCTION validation_report_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a validation report never changes' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER validation_report_guard BEFORE UPDATE OR DELETE ON registry_validationreport
    FOR EACH ROW EXECUTE FUNCTION validation_report_guard();

GRANT SELECT, INSERT, DELETE ON registry_evaluationset TO lorekeeper_app;
GRANT UPDATE (adapter_id, examples, digest, changed_at) ON registry_evaluationset TO lorekeeper_app;
GRANT SELECT, INSERT ON registry_evaluationgates TO lorekeeper_app;
GRANT UPDATE (gates, changed_at) ON registry_evaluationgates TO lorekeeper_app;
GRANT SELECT, INSERT ON registry_revalidation TO lorekeeper_app;
GRANT UPDATE (sent_at, finished_at, report_id) ON registry_revalidation TO lorekeeper_app;
GRANT USAGE ON SEQUENCE registry_evaluationset_id_seq, registry_revalidation_id_seq TO lorekeeper_app;
