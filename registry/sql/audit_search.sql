-- Finding records of the audit log by what they say, at a cost that does not grow with the log.
--
-- Every record has terms: who, by which token, what it was done to, the tag and its beginnings, the outcome, the request, each
-- word, and the block of 4,096 records of its chain that it lies in. One index over the terms answers any combination of them. A
-- search goes from block to block and asks the index for what has all terms and lies in this block: so what is found comes in
-- order, nothing is sorted but one block, and no more than one block is read for nothing.

-- The words of a text; of Chinese, Japanese and Korean each character is one.
CREATE FUNCTION audit_words(p_text text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 500 AS $$
    SELECT tsvector_to_array(to_tsvector('pg_catalog.simple'::regconfig, translate(
        CASE WHEN octet_length(p_text) = char_length(p_text) THEN p_text
             ELSE regexp_replace(p_text, '([\u2E80-\u9FFF\uAC00-\uD7AF\uF900-\uFAFF])', ' \1 ', 'g') END,
        '":{}[](),/@.-+&=%~#<>''\_|;?!*$', repeat(' ', 40))))
$$;

-- An append must never fail for being indexed: what is long is cut.
CREATE FUNCTION audit_terms(
    p_chain text, p_seq bigint, p_actor jsonb, p_action text, p_object jsonb, p_before jsonb, p_after jsonb,
    p_reason text, p_request text, p_source text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
    SELECT array_remove(ARRAY[
        'b:' || p_chain || '/' || (p_seq >> 12),
        'p:' || lower(left(p_actor ->> 'id', 200)),
        't:' || nullif(left(p_actor ->> 'token', 200), ''),
        'o:' || lower(left(p_object ->> 'id', 200)),
        'o:' || lower(left(p_object ->> 'name', 200)),
        'o:' || lower(left(split_part(p_object ->> 'name', '@', 1), 200)),
        'x:' || split_part(p_action, ':', 1),
        'x:' || split_part(p_action, ':', 1) || ':' || split_part(p_action, ':', 2),
        'x:' || p_action,
        'q:' || nullif(left(p_request, 200), ''),
        CASE WHEN p_action LIKE '%:access:deny' THEN 'r:denied' ELSE 'r:allowed' END
    ], NULL) || public.audit_words(left(concat_ws(' ', p_actor ->> 'id', p_actor ->> 'name', p_object ->> 'kind', p_object ->> 'id',
        p_object ->> 'name', p_action, p_reason, p_source, p_before::text, p_after::text), 8000))
$$;

-- Each insert puts its terms in place at once: a list of what is to be put in place would hold up whoever it is full for.
CREATE INDEX audit_by_terms ON registry_auditrecord
    USING gin (public.audit_terms(chain, seq, actor, action, object, before, after, reason, request_id, source))
    WITH (fastupdate = off);

-- Records of a chain between two numbers (both included) that have all terms; newest first, or with `p_up` oldest first.
CREATE FUNCTION audit_find(
    p_chain text, p_terms text[], p_bottom bigint, p_top bigint, p_since timestamptz, p_until timestamptz, p_up boolean, p_limit int)
RETURNS SETOF registry_auditrecord
-- A block is too little for a second process: to start one takes a hundred times as long as to read it.
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET max_parallel_workers_per_gather = 0 SET jit = off AS $$
DECLARE
    v_step int := CASE WHEN p_up THEN 1 ELSE -1 END;
    v_block bigint := CASE WHEN p_up THEN p_bottom ELSE p_top END >> 12;
    v_last bigint := CASE WHEN p_up THEN p_top ELSE p_bottom END >> 12;
    v_left int := p_limit;
    v_found int;
BEGIN
    WHILE v_left > 0 AND (v_last - v_block) * v_step >= 0 LOOP
        RETURN QUERY
            WITH found AS MATERIALIZED (
                SELECT r.* FROM registry_auditrecord r
                WHERE public.audit_terms(
                        r.chain, r.seq, r.actor, r.action, r.object, r.before, r.after, r.reason, r.request_id, r.source)
                    @> (p_terms || ('b:' || p_chain || '/' || v_block)))
            SELECT f.* FROM found f
            WHERE f.chain = p_chain AND f.seq BETWEEN p_bottom AND p_top
              AND (p_since IS NULL OR f.at >= p_since) AND (p_until IS NULL OR f.at < p_until)
            ORDER BY f.seq * v_step LIMIT v_left;
        GET DIAGNOSTICS v_found = ROW_COUNT;
        v_left := v_left - v_found;
        v_block := v_block + v_step;
    END LOOP;
END $$;

-- As `audit_first_broken`, no further than `p_until`: a long chain is checked in slices.
CREATE FUNCTION audit_first_broken_until(p_chain text, p_seq bigint, p_hash text, p_until bigint) RETURNS bigint
LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
    SELECT min(bad.place) FROM (
        SELECT p_seq + row_number() OVER w AS place, r.seq, r.hash, r.prev_hash, r.payload,
               coalesce(lag(r.hash) OVER w, p_hash) AS before
        FROM registry_auditrecord r WHERE r.chain = p_chain AND r.seq > p_seq AND r.seq <= p_until WINDOW w AS (ORDER BY r.seq)
    ) bad
    WHERE bad.seq <> bad.place OR bad.prev_hash <> bad.before
       OR bad.hash <> encode(sha256(convert_to(bad.prev_hash || E'\n' || bad.payload, 'UTF8')), 'hex')
$$;

GRANT SELECT, INSERT ON registry_auditcheck TO lorekeeper_app;
GRANT UPDATE (reached, hash, signed_to, moved_at, ended_at, finding, broken_at) ON registry_auditcheck TO lorekeeper_app;
GRANT USAGE ON SEQUENCE registry_auditcheck_id_seq TO lorekeeper_app;
REVOKE ALL ON FUNCTION
    audit_words(text), audit_terms(text, bigint, jsonb, text, jsonb, jsonb, jsonb, text, text, text),
    audit_find(text, text[], bigint, bigint, timestamptz, timestamptz, boolean, int),
    audit_first_broken_until(text, bigint, text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    audit_words(text), audit_terms(text, bigint, jsonb, text, jsonb, jsonb, jsonb, text, text, text),
    audit_find(text, text[], bigint, bigint, timestamptz, timestamptz, boolean, int),
    audit_first_broken_until(text, bigint, text, bigint) TO lorekeeper_app;
