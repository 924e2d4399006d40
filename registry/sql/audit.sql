-- The audit chain: one writer, append-only, each record bound to the one before it.
--
-- The caller passes three fragments of one RFC 8785 object; sequence and time are only known under the chain's lock, so they are
-- spliced in here, in the place that the canonical key order gives them:
--   action, actor, after | at | before, chain, object, reason, request_id | seq | source, v

CREATE FUNCTION audit_append(p_chain text, p_head text, p_middle text, p_tail text) RETURNS bigint
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
    v_doc := v_payload::jsonb;
    IF v_doc ->> 'chain' IS DISTINCT FROM p_chain THEN
        RAISE EXCEPTION 'audit_append: the record names chain %, the call names %', v_doc ->> 'chain', p_chain;
    END IF;
    INSERT INTO registry_auditrecord
        (chain, seq, at, actor, action, object, before, after, reason, request_id, source, payload, prev_hash, hash)
    VALUES (
        p_chain, v_seq, v_at, v_doc -> 'actor', v_doc ->> 'action', v_doc -> 'object',
        nullif(v_doc -> 'before', 'null'::jsonb), nullif(v_doc -> 'after', 'null'::jsonb),
        v_doc ->> 'reason', v_doc ->> 'request_id', v_doc ->> 'source', v_payload, v_prev,
        encode(sha256(convert_to(v_prev || E'\n' || v_payload, 'UTF8')), 'hex')
    );
    RETURN v_seq;
END $$;

CREATE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER audit_no_update_or_delete BEFORE UPDATE OR DELETE ON registry_auditrecord
    FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON registry_auditrecord
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change();
ALTER TABLE registry_auditrecord ENABLE ALWAYS TRIGGER audit_no_update_or_delete;
ALTER TABLE registry_auditrecord ENABLE ALWAYS TRIGGER audit_no_truncate;
