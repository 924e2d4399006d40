-- Request records and comparisons of shadow answers, in one table a day (UTC). Days are made ahead; what belongs to no day
-- that there is (gateways that send late, clocks that are wrong) is in a table of its own and is found like the rest.
ALTER TABLE gateway_request RENAME TO gateway_request_before;

CREATE TABLE gateway_request (
    at timestamptz NOT NULL,
    request_id text NOT NULL,
    tenant text NOT NULL,
    alias text NOT NULL,
    version_id uuid,
    node text,
    tier text NOT NULL,
    status int NOT NULL,
    error_kind text NOT NULL,
    queue_ms int NOT NULL,
    load_ms int NOT NULL,
    ttft_ms int NOT NULL,
    total_ms int NOT NULL,
    prompt_tokens int,
    completion_tokens int,
    stream boolean NOT NULL,
    path text NOT NULL DEFAULT '',
    side text NOT NULL DEFAULT '' CHECK (side IN ('', 'stable', 'canary')),
    is_shadow boolean NOT NULL DEFAULT false,
    fallback text NOT NULL DEFAULT '' CHECK (fallback IN ('', 'stable', 'base')),
    retries int NOT NULL DEFAULT 0,
    engine_ms int NOT NULL DEFAULT 0,
    -- Which transaction wrote it: batches of several gateways commit in any order, and counting them goes by this.
    written_by xid8 NOT NULL DEFAULT pg_current_xact_id()
) PARTITION BY RANGE (at);

CREATE TABLE gateway_shadow (
    at timestamptz NOT NULL,
    request_id text NOT NULL,
    tenant text NOT NULL,
    alias text NOT NULL,
    stable_version_id uuid NOT NULL,
    candidate_version_id uuid NOT NULL,
    agreement double precision CHECK (agreement BETWEEN 0 AND 1),
    stable_tokens int,
    candidate_tokens int,
    stable_ms int NOT NULL,
    candidate_ms int NOT NULL,
    error_kind text NOT NULL
) PARTITION BY RANGE (at);

-- A client's own mistakes and goings are no failures of ours; being turned away for a limit (429) is one it feels.
CREATE FUNCTION gateway_request_failed(p_error_kind text, p_status int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT p_error_kind <> '' AND (p_status = 429 OR p_status NOT BETWEEN 400 AND 499)
$$;

CREATE TABLE gateway_request_default PARTITION OF gateway_request DEFAULT;
CREATE TABLE gateway_shadow_default PARTITION OF gateway_shadow DEFAULT;

CREATE FUNCTION gateway_records_check(p_table text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_table NOT IN ('gateway_request', 'gateway_shadow') THEN
        RAISE EXCEPTION '% has no days', p_table USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- One at a time: two sweeps that overlap would make the same day.
    PERFORM pg_advisory_xact_lock(hashtextextended('gateway records', 0));
END $$;

-- Make the table of one day; false if it's there. It is attached, not created in place: that would hold up whoever
-- reads or writes. Whoever waits for a lock is waited for as well, so nobody waits here for long.
CREATE FUNCTION gateway_records_make_day(p_table text, p_day date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    v_name text := p_table || '_' || to_char(p_day, 'YYYYMMDD');
    v_from timestamptz := p_day::timestamp AT TIME ZONE 'UTC';
    v_to timestamptz := (p_day + 1)::timestamp AT TIME ZONE 'UTC';
    v_has_strays boolean;
BEGIN
    PERFORM gateway_records_check(p_table);
    IF p_day > (now() AT TIME ZONE 'UTC')::date + 31 THEN
        RAISE EXCEPTION 'days are made 31 days ahead at most' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF to_regclass(v_name) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', v_name, p_table);
    EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE at >= $1 AND at < $2)', p_table || '_default')
        INTO v_has_strays USING v_from, v_to;
    IF v_has_strays THEN
        -- Nobody may read while they move: a reader that planned before would find them in neither place.
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', p_table);
        EXECUTE format(
            'WITH strays AS (DELETE FROM %I WHERE at >= $1 AND at < $2 RETURNING *) INSERT INTO %I SELECT * FROM strays',
            p_table || '_default', v_name) USING v_from, v_to;
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', p_table, v_name, v_from, v_to);
    RETURN true;
END $$;

-- Drop every day before `p_day`, which is today at the latest, and what else is older.
CREATE FUNCTION gateway_records_drop_before(p_table text, p_day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    v_name text;
BEGIN
    PERFORM gateway_records_check(p_table);
    IF p_day > (now() AT TIME ZONE 'UTC')::date THEN
        RAISE EXCEPTION 'today is kept' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR v_name IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = p_table::regclass AND c.relname ~ '_[0-9]{8}$'
            AND right(c.relname, 8) < to_char(p_day, 'YYYYMMDD')
        ORDER BY 1
    LOOP
        EXECUTE format('DROP TABLE %I', v_name);
    END LOOP;
    EXECUTE format('DELETE FROM %I WHERE at < $1', p_table || '_default')
        USING p_day::timestamp AT TIME ZONE 'UTC';
END $$;

REVOKE ALL ON FUNCTION gateway_records_check(text), gateway_records_make_day(text, date),
    gateway_records_drop_before(text, date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gateway_records_make_day(text, date), gateway_records_drop_before(text, date)
    TO lorekeeper_app;

-- The days that there are records of, as far as they are kept anyway, and the next; the sweeps make those to come.
SELECT gateway_records_make_day(kept.name, day::date)
FROM (VALUES ('gateway_request'), ('gateway_shadow')) AS kept (name),
    generate_series(
        (SELECT greatest(least(min(at), now()), now() - interval '35 days') FROM gateway_request_before)
            AT TIME ZONE 'UTC',
        now() AT TIME ZONE 'UTC' + interval '1 day', interval '1 day'
    ) AS day;

INSERT INTO gateway_request (
    at, request_id, tenant, alias, version_id, node, tier, status, error_kind, queue_ms, load_ms, ttft_ms, total_ms,
    prompt_tokens, completion_tokens, stream, written_by)
SELECT DISTINCT ON (at, request_id)
    at, request_id, tenant, alias, version_id, node, tier, status, error_kind, queue_ms, load_ms, ttft_ms, total_ms,
    prompt_tokens, completion_tokens, stream, written_by
FROM gateway_request_before;
DROP TABLE gateway_request_before;

ALTER TABLE gateway_request ADD PRIMARY KEY (at, request_id, is_shadow);
ALTER TABLE gateway_shadow ADD PRIMARY KEY (at, request_id);
CREATE INDEX gateway_request_last_use ON gateway_request (version_id, at DESC);
CREATE INDEX gateway_request_of_tenant ON gateway_request (tenant, at);
CREATE INDEX gateway_request_written_by ON gateway_request (written_by);
CREATE INDEX gateway_shadow_of_candidate ON gateway_shadow (candidate_version_id, at DESC);

GRANT SELECT ON gateway_request, gateway_shadow TO lorekeeper_app;
GRANT INSERT ON gateway_request, gateway_shadow TO lorekeeper_gateway;
