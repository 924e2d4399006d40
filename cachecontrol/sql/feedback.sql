-- Marks that applications give to answers, in one table a day as request records are (requests.sql). A mark may come
-- before the record that it is about, or about none: it is joined by tenant and request when somebody asks.
CREATE TABLE gateway_feedback (
    at timestamptz NOT NULL,
    tenant text NOT NULL,
    request_id text NOT NULL,
    name text NOT NULL,
    mark double precision NOT NULL CHECK (mark BETWEEN 0 AND 1)
) PARTITION BY RANGE (at);
CREATE TABLE gateway_feedback_default PARTITION OF gateway_feedback DEFAULT;

CREATE OR REPLACE FUNCTION gateway_records_check(p_table text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_table NOT IN ('gateway_request', 'gateway_shadow', 'gateway_feedback') THEN
        RAISE EXCEPTION '% has no days', p_table USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- One at a time: two sweeps that overlap would make the same day.
    PERFORM pg_advisory_xact_lock(hashtextextended('gateway records', 0));
END $$;

SELECT gateway_records_make_day('gateway_feedback', (now() AT TIME ZONE 'UTC')::date + ahead)
FROM generate_series(0, 1) AS ahead;

-- A mark that is sent twice is one row.
ALTER TABLE gateway_feedback ADD PRIMARY KEY (at, tenant, request_id, name);

-- What was last said, and when, of each answer whose request came at `p_since` or later. Join it to those requests:
--     FROM gateway_request r JOIN gateway_marks($1) m USING (tenant, request_id) WHERE r.at >= $1 AND NOT r.is_shadow
-- No view: a condition on the time would not get below its DISTINCT, and every mark that is kept would be read. A mark
-- comes after its request, but perhaps by another gateway, whose clock may be behind.
CREATE FUNCTION gateway_marks(p_since timestamptz, p_name text DEFAULT 'quality')
RETURNS TABLE (tenant text, request_id text, mark double precision, at timestamptz) LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (f.tenant, f.request_id) f.tenant, f.request_id, f.mark, f.at
    FROM gateway_feedback f
    WHERE f.at >= p_since - interval '1 minute' AND f.name = p_name
    ORDER BY f.tenant, f.request_id, f.at DESC
$$;

REVOKE ALL ON FUNCTION gateway_marks(timestamptz, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gateway_marks(timestamptz, text) TO lorekeeper_app;
GRANT SELECT ON gateway_feedback TO lorekeeper_app;
GRANT INSERT ON gateway_feedback TO lorekeeper_gateway;
