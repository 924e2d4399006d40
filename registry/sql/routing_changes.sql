-- What has changed in the routing views, row by row, so that a gateway reads only that.
--
-- A gateway keeps the database's own snapshot of its last read (pg_current_snapshot) and reads the changes whose
-- transactions that one didn't see and this one does. So none is missed and none waits for another, whatever the order
-- in which transactions commit.
CREATE TABLE routing_change (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    kind text NOT NULL,
    key text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX routing_change_xid ON routing_change (xid);

-- The newest transaction whose changes are forgotten: whoever may have missed it reads everything again.
CREATE TABLE routing_feed (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    forgotten xid8 NOT NULL DEFAULT '0'
);
INSERT INTO routing_feed DEFAULT VALUES;

-- That a row of the view routing_<kind> may have changed. `key` says which: the primary key of versions, the version of
-- residencies, tenant/name of aliases, the digest of tokens, the name of nodes, the tenant of rules, nothing of
-- cold_rules, which are read together. Gateways hear of it at commit if it `wakes` them, else they find it by the poll.
-- pg_notify folds equal payloads of one transaction into one message.
CREATE FUNCTION routing_note(kind text, key text, wakes boolean) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO routing_change (kind, key) VALUES (routing_note.kind, routing_note.key);
    IF wakes THEN
        PERFORM pg_notify('lorekeeper_routing', routing_note.kind);
    END IF;
END $$;

-- Forget changes older than that, but none that a transaction still running may precede: a gateway that has read lately
-- has seen them all. Returns how many.
CREATE FUNCTION routing_forget(older interval) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    gone bigint;
    newest xid8;
BEGIN
    WITH deleted AS (
        DELETE FROM routing_change WHERE at < now() - older AND xid < pg_snapshot_xmin(pg_current_snapshot())
        RETURNING xid)
    SELECT count(*), (SELECT d.xid FROM deleted d ORDER BY d.xid DESC LIMIT 1) INTO gone, newest FROM deleted;
    UPDATE routing_feed SET forgotten = newest WHERE forgotten < newest;
    RETURN gone;
END $$;

-- A version is seen from its approval on; its signature may come in the same transaction, before or after.
CREATE FUNCTION routing_note_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note('versions', COALESCE(NEW.id, OLD.id)::text, true);
    RETURN NULL;
END $$;
CREATE FUNCTION routing_note_signature() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM routing_note('versions', COALESCE(NEW.version_id, OLD.version_id)::text, true);
    RETURN NULL;
END $$;
DROP TRIGGER routing_version_changed ON registry_version;
CREATE TRIGGER routing_version_changed AFTER UPDATE OF state ON registry_version
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state AND NEW.state IN ('approved', 'yanked', 'revoked'))
    EXECUTE FUNCTION routing_note_version();
CREATE TRIGGER routing_version_gone AFTER DELETE ON registry_version
    FOR EACH ROW WHEN (OLD.state IN ('approved', 'yanked', 'revoked')) EXECUTE FUNCTION routing_note_version();
CREATE TRIGGER routing_signature_changed AFTER INSERT OR DELETE ON registry_signature
    FOR EACH ROW EXECUTE FUNCTION routing_note_signature();

CREATE FUNCTION routing_note_token() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM routing_note('tokens', OLD.digest, true);
    END IF;
    IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND NEW.digest <> OLD.digest) THEN
        PERFORM routing_note('tokens', NEW.digest, true);
    END IF;
    RETURN NULL;
END $$;
DROP TRIGGER routing_token_made ON registry_apitoken;
DROP TRIGGER routing_token_changed ON registry_apitoken;
CREATE TRIGGER routing_token_made AFTER INSERT ON registry_apitoken
    FOR EACH ROW WHEN (NEW.kind = 'application') EXECUTE FUNCTION routing_note_token();
CREATE TRIGGER routing_token_gone AFTER DELETE ON registry_apitoken
    FOR EACH ROW WHEN (OLD.kind = 'application') EXECUTE FUNCTION routing_note_token();
CREATE TRIGGER routing_token_changed AFTER UPDATE OF revoked_at, expires_at, scopes, digest ON registry_apitoken
    FOR EACH ROW WHEN (OLD.kind = 'application' AND
        (OLD.revoked_at, OLD.expires_at, OLD.scopes, OLD.digest)
        IS DISTINCT FROM (NEW.revoked_at, NEW.expires_at, NEW.scopes, NEW.digest))
    EXECUTE FUNCTION routing_note_token();

REVOKE ALL ON FUNCTION routing_note(text, text, boolean), routing_forget(interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION routing_note(text, text, boolean), routing_forget(interval) TO lorekeeper_app;
GRANT SELECT ON routing_change, routing_feed TO lorekeeper_gateway;
