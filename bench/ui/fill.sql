-- What years of work leave behind: versions of 200 adapters, and audit records of all kinds.
-- Records are linked by number, not by what they say: good enough for every page but for checking the chain.
SET synchronous_commit = off;
-- No rule is asked for each row; what is put in keeps them. Takes a superuser.
SET session_replication_role = replica;

INSERT INTO registry_adapter (tenant_id, name, base_model_id, description, created_at)
SELECT t.id, 'adapter-' || n, a.base_model_id, '', now() - interval '700 days'
FROM registry_tenant t CROSS JOIN (SELECT base_model_id FROM registry_adapter WHERE name = 'tone' LIMIT 1) a,
     generate_series(1, 199) n
WHERE t.name = 'acme';

ANALYZE registry_adapter;

INSERT INTO registry_version (
    id, adapter_id, name, base_revision_id, uploader_id, root_digest, engine_name, lineage, state, state_changed_at,
    state_message, rank, target_modules, validation_digest, created_at, evaluation_attempts)
SELECT gen_random_uuid(), a.id, 'r' || n, v.base_revision_id, v.uploader_id, encode(sha256(n::text::bytea), 'hex'), 'bench-' || n,
    jsonb_build_object('job', 'train-' || n %% 5000, 'commit', substr(md5(n::text), 1, 12)),
    (ARRAY['approved', 'approved', 'approved', 'candidate', 'rejected', 'yanked', 'revoked'])[1 + n %% 7],
    now() - n * interval '9 minutes', '', 8 * (1 + n %% 4), ARRAY['q_proj', 'v_proj'], repeat('0', 64),
    now() - n * interval '10 minutes', 0
FROM generate_series(1, %(versions)s) n
JOIN LATERAL (SELECT id FROM registry_adapter
              WHERE name = CASE WHEN n %% 5 = 0 THEN 'tone' ELSE 'adapter-' || (1 + n %% 199) END
                AND tenant_id = (SELECT id FROM registry_tenant WHERE name = 'acme')) a ON true
CROSS JOIN (SELECT base_revision_id, uploader_id FROM registry_version WHERE name = 'v1' LIMIT 1) v;

INSERT INTO registry_artifact (tenant_id, sha256, size, stored_at, created_at)
SELECT t.id, encode(sha256(('file ' || n)::bytea), 'hex'), 1000000 + n, now(), now()
FROM registry_tenant t, generate_series(1, 1000) n WHERE t.name = 'acme';

INSERT INTO registry_versionfile (version_id, path, artifact_id)
SELECT v.id, f.path, f.artifact
FROM (SELECT id, row_number() OVER () AS n FROM registry_version WHERE engine_name LIKE 'bench-%%') v
CROSS JOIN LATERAL (VALUES ('adapter_config.json', 0), ('adapter_model.safetensors', 500)) place(path, shift)
CROSS JOIN LATERAL (
    SELECT place.path, (SELECT min(id) FROM registry_artifact WHERE size > 1000000) + (v.n + place.shift) %% 1000 AS artifact) f;

-- An index is sooner made at once than row by row.
CREATE TEMP TABLE told AS SELECT indexdef FROM pg_indexes WHERE indexname IN ('audit_by_terms', 'audit_by_time');
DROP INDEX audit_by_terms, audit_by_time;

-- Looked up once: what is being inserted would be in the way of looking it up for each row.
WITH chains AS MATERIALIZED (
    SELECT chain, records, now() - interval '730 days' AS began,
           coalesce((SELECT max(seq) FROM registry_auditrecord r WHERE r.chain = v.chain), 0) AS base
    FROM (VALUES ('acme', %(records)s * 49 / 50), ('platform', %(records)s / 50)) v(chain, records))
INSERT INTO registry_auditrecord (
    chain, seq, at, actor, action, object, before, after, reason, request_id, source, how, payload, prev_hash, hash)
SELECT c.chain, c.base + n, c.began + n * ((now() - c.began) / (c.records + 1)),
    jsonb_build_object('kind', 'person', 'id', 'person-' || who || '@example.com', 'name', 'Person ' || who,
        'token', CASE WHEN n %% 3 = 0 THEN 'tok' || who ELSE '' END),
    action,
    jsonb_build_object('kind', 'version', 'id', 'version-' || what, 'name', 'acme/adapter-' || what %% 199 || '@r' || what),
    jsonb_build_object('state', 'candidate'), jsonb_build_object('state', 'approved', 'weight', n %% 100),
    CASE WHEN n %% 500000 = 77 THEN 'a word as rare as xylophone' WHEN n %% 4 = 0 THEN 'regular work of the nightly pipeline' ELSE '' END,
    'request-' || n / 2, '10.0.' || n %% 4 || '.' || n %% 200, 'api',
    '{"action":"' || action || '","chain":"' || c.chain || '","seq":' || c.base + n || '}',
    encode(sha256((c.chain || (c.base + n - 1))::bytea), 'hex'), encode(sha256((c.chain || (c.base + n))::bytea), 'hex')
FROM chains c
CROSS JOIN LATERAL generate_series(1, c.records) n
CROSS JOIN LATERAL (SELECT
    -- Few do most, one did something long ago.
    CASE WHEN n < 20 THEN 999 ELSE (hashint8(n) & 1023) * (hashint8(n) & 1023) / 5300 END AS who,
    (hashint8(n * 7) & 65535) + 1 AS what,
    CASE WHEN n %% 101 = 0 THEN CASE c.chain WHEN 'platform' THEN 'platform:access:deny' ELSE 'tenant:access:deny' END
         ELSE (ARRAY['adapter:version:upload', 'adapter:version:finalize', 'adapter:version:validate', 'adapter:version:approve',
                     'tenant:alias:move', 'tenant:release:make', 'tenant:release:begin_step', 'tenant:release:promote',
                     'tenant:token:create', 'adapter:version:yank'])[1 + (hashint8(n * 13) & 1023) %% 10] END AS action) made;

DO $$
DECLARE statement text;
BEGIN
    FOR statement IN SELECT indexdef FROM told LOOP
        EXECUTE statement;
    END LOOP;
END $$;
