-- What a release's judge counts out of the request records (cachecontrol/requests/windows.py).

-- The names under which an alias is called: its own, and those by which other tenants were granted it.
CREATE FUNCTION gateway_alias_names(p_alias bigint) RETURNS TABLE (tenant text, alias text) LANGUAGE sql STABLE AS $$
    SELECT t.name::text, a.name::text
    FROM releases_alias a JOIN registry_tenant t ON t.id = a.tenant_id WHERE a.id = p_alias
    UNION
    SELECT t.name::text, g.name::text
    FROM releases_aliasgrant g JOIN registry_tenant t ON t.id = g.tenant_id WHERE g.alias_id = p_alias
$$;

-- The class of a time: releases.judge.facts.class_of for whole milliseconds. The logarithm of a power of two comes out a
-- hair above a whole number, so a hair is taken off.
CREATE FUNCTION gateway_class_of_ms(p_ms int) RETURNS int LANGUAGE sql IMMUTABLE AS $$
    SELECT ceil(16 * ln(CASE WHEN p_ms < 1 THEN 1 WHEN p_ms > 1000000000 THEN 1000000000 ELSE p_ms END) / ln(2) - 1e-9)::int - 1
$$;

CREATE FUNCTION gateway_slice_of(p_ended timestamptz, p_since timestamptz, p_slice_s double precision) RETURNS int
LANGUAGE sql STABLE AS $$
    SELECT floor(extract(epoch FROM p_ended - p_since)::double precision / p_slice_s)::int
$$;

-- The requests of an alias that its stable version and its candidate have answered or failed, by `side`. Neither what was
-- mirrored nor what another version answered instead. Whoever went away before he got anything has waited at least so
-- long, and that counts among the times: else nobody would see the slowest answers.
CREATE FUNCTION gateway_compared(
    p_alias bigint, p_stable uuid, p_candidate uuid, p_since timestamptz, p_until timestamptz)
RETURNS TABLE (
    tenant text, request_id text, ended timestamptz, is_canary boolean, is_answered boolean, is_failed boolean,
    ttft_ms int, total_ms int, engine_ms int)
LANGUAGE sql STABLE AS $$
    SELECT r.tenant, r.request_id, r.at + r.total_ms * interval '1 millisecond', r.version_id = p_candidate,
           r.error_kind = '', gateway_request_failed(r.error_kind, r.status),
           CASE WHEN r.stream AND r.error_kind = '' AND r.ttft_ms > 0 THEN r.ttft_ms
                WHEN r.stream AND r.error_kind = 'client_gone' AND r.ttft_ms = 0 THEN r.total_ms END,
           CASE WHEN r.error_kind = '' OR (r.error_kind = 'client_gone' AND r.ttft_ms = 0) THEN r.total_ms END,
           CASE WHEN r.error_kind = '' THEN r.engine_ms END
    FROM gateway_request r
    WHERE r.version_id IN (p_stable, p_candidate) AND r.at >= p_since AND r.at < p_until
      AND r.at + r.total_ms * interval '1 millisecond' < p_until AND NOT r.is_shadow AND r.fallback = ''
      AND r.side = CASE WHEN r.version_id = p_candidate THEN 'canary' ELSE 'stable' END
      AND (r.tenant, r.alias) IN (SELECT n.tenant, n.alias FROM gateway_alias_names(p_alias) n)
$$;

-- The comparisons of answers that were mirrored to the candidate.
CREATE FUNCTION gateway_mirrored(
    p_alias bigint, p_stable uuid, p_candidate uuid, p_since timestamptz, p_until timestamptz)
RETURNS TABLE (ended timestamptz, is_failed boolean, agreement double precision, candidate_ms int, stable_ms int)
LANGUAGE sql STABLE AS $$
    SELECT s.at + s.candidate_ms * interval '1 millisecond', s.error_kind <> '', s.agreement,
           CASE WHEN s.error_kind = '' THEN s.candidate_ms END, CASE WHEN s.error_kind = '' THEN s.stable_ms END
    FROM gateway_shadow s
    WHERE s.candidate_version_id = p_candidate AND s.stable_version_id = p_stable
      AND s.at >= p_since AND s.at < p_until AND s.at + s.candidate_ms * interval '1 millisecond' < p_until
      AND (s.tenant, s.alias) IN (SELECT n.tenant, n.alias FROM gateway_alias_names(p_alias) n)
$$;

REVOKE ALL ON FUNCTION gateway_alias_names(bigint), gateway_class_of_ms(int),
    gateway_slice_of(timestamptz, timestamptz, double precision),
    gateway_compared(bigint, uuid, uuid, timestamptz, timestamptz),
    gateway_mirrored(bigint, uuid, uuid, timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gateway_alias_names(bigint), gateway_class_of_ms(int),
    gateway_slice_of(timestamptz, timestamptz, double precision),
    gateway_compared(bigint, uuid, uuid, timestamptz, timestamptz),
    gateway_mirrored(bigint, uuid, uuid, timestamptz, timestamptz) TO lorekeeper_app;
