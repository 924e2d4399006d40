-- The audit log, second part: how an act came in, records that can be read in one way only, checkpoints, and notices.

-- What every reader sees is the same: no key stands twice in a record, at no depth. What the caller gave can't speak of
-- the number or the time, which are spliced in here. `how` is new in records of the form v 2:
--   action, actor, after | at | before, chain, how, object, reason, request_id | seq | source, v
CREATE OR REPLACE FUNCTION audit_append(p_chain text, p_head text, p_middle text, p_tail text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_seq bigint;
    v_prev text;
    v_at timestamptz;
    v_payload text;
    v_doc jsonb;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('audit:' || p_chain, 0));
    SELECT seq, hash INTO v_seq, v_prev FROM registry_auditrecord WHERE chain = p_chain ORDER BY seq DESC LIMIT 1;
    v_seq := coalesce(v_seq, 0) + 1;
    v_prev := coalesce(v_prev, repeat('0', 64));
    v_at := clock_timestamp();
    v_payload := '{' || p_head
        || ',"at":"' || to_char(v_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '",'
        || p_middle || ',"seq":' || v_seq || ',' || p_tail || '}';
    IF v_payload IS NOT JSON OBJECT WITH UNIQUE KEYS THEN
        RAISE EXCEPTION 'audit_append: the fragments make no object in which every key stands once';
    END IF;
    v_doc := v_payload::jsonb;
    IF v_doc ->> 'chain' IS DISTINCT FROM p_chain THEN
        RAISE EXCEPTION 'audit_append: the record names chain %, the call names %', v_doc ->> 'chain', p_chain;
    END IF;
    INSERT INTO registry_auditrecord
        (chain, seq, at, actor, action, object, before, after, reason, request_id, source, how, payload, prev_hash, hash)
    VALUES (
        p_chain, v_seq, v_at, v_doc -> 'actor', v_doc ->> 'action', v_doc -> 'object',
        nullif(v_doc -> 'before', 'null'::jsonb), nullif(v_doc -> 'after', 'null'::jsonb),
        v_doc ->> 'reason', v_doc ->> 'request_id', v_doc ->> 'source', coalesce(v_doc ->> 'how', ''), v_payload, v_prev,
        encode(sha256(convert_to(v_prev || E'\n' || v_payload, 'UTF8')), 'hex')
    );
    RETURN v_seq;
END $$;

-- The chains that have grown since their last checkpoint, or whose last one was signed by a key that counts no more, and
-- that had none for `p_every`; also those that lost records. Looks up the end of each chain by its index, however long
-- the log is.
CREATE FUNCTION audit_checkpoints_due(p_every interval) RETURNS TABLE (chain text)
LANGUAGE sql VOLATILE SET search_path = public, pg_temp AS $$
    SELECT c.name
    FROM (SELECT 'platform' AS name UNION ALL SELECT t.name FROM registry_tenant t) c
    LEFT JOIN LATERAL (
        SELECT r.seq FROM registry_auditrecord r WHERE r.chain = c.name ORDER BY r.seq DESC LIMIT 1) head ON true
    LEFT JOIN LATERAL (
        SELECT k.seq, k.key_id, k.created_at FROM registry_auditcheckpoint k WHERE k.chain = c.name
        ORDER BY k.id DESC LIMIT 1) last ON true
    WHERE (last.seq IS NULL AND head.seq IS NOT NULL)
       OR EXISTS (SELECT 1 FROM registry_signingkey s WHERE s.key_id = last.key_id AND s.revoked_at IS NOT NULL)
       OR (head.seq IS DISTINCT FROM last.seq AND last.created_at <= clock_timestamp() - p_every)
    ORDER BY c.name
$$;

-- The first record behind `p_seq` (whose hash was `p_hash`) that does not fit; NULL when all do.
CREATE FUNCTION audit_first_broken(p_chain text, p_seq bigint, p_hash text) RETURNS bigint
LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
    SELECT min(bad.place) FROM (
        SELECT p_seq + row_number() OVER w AS place, r.seq, r.hash, r.prev_hash, r.payload,
               coalesce(lag(r.hash) OVER w, p_hash) AS before
        FROM registry_auditrecord r WHERE r.chain = p_chain AND r.seq > p_seq WINDOW w AS (ORDER BY r.seq)
    ) bad
    WHERE bad.seq <> bad.place OR bad.prev_hash <> bad.before
       OR bad.hash <> encode(sha256(convert_to(bad.prev_hash || E'\n' || bad.payload, 'UTF8')), 'hex')
$$;

CREATE TRIGGER audit_checkpoint_no_change BEFORE UPDATE OR DELETE ON registry_auditcheckpoint
    FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
ALTER TABLE registry_auditcheckpoint ENABLE ALWAYS TRIGGER audit_checkpoint_no_change;

GRANT SELECT, INSERT ON registry_auditcheckpoint TO lorekeeper_app;
-- Notices are no part of the log: they say what was told already and count what comes again.
GRANT SELECT, INSERT, DELETE ON registry_auditnotice TO lorekeeper_app;
GRANT UPDATE (count, told, last_at) ON registry_auditnotice TO lorekeeper_app;
GRANT USAGE ON SEQUENCE registry_auditcheckpoint_id_seq, registry_auditnotice_id_seq TO lorekeeper_app;
REVOKE ALL ON FUNCTION audit_checkpoints_due(interval), audit_first_broken(text, bigint, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit_checkpoints_due(interval), audit_first_broken(text, bigint, text) TO lorekeeper_app;
