-- Forget changes older than that, but none that a transaction still running may precede: a gateway that has read lately
-- has seen them all. Returns how many.
--
-- A database that was restored from another one's dump has that one's numbers. Those that it hasn't given out itself mean
-- nothing here, and would have every gateway read everything, each time, until it had counted as far. What a statement
-- sees of others it has given out below its own snapshot's end, so that each of them has to ask for its own snapshot.
CREATE OR REPLACE FUNCTION routing_forget(older interval) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    gone bigint;
    newest xid8;
BEGIN
    -- One at a time: what another one remembers meanwhile would look like a number from elsewhere.
    PERFORM FROM routing_feed FOR UPDATE;
    DELETE FROM routing_change
    WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()) AND xid <> pg_current_xact_id();
    UPDATE routing_feed SET forgotten = pg_snapshot_xmin(pg_current_snapshot())
    WHERE forgotten >= pg_snapshot_xmax(pg_current_snapshot());
    WITH deleted AS (
        DELETE FROM routing_change WHERE at < now() - older AND xid < pg_snapshot_xmin(pg_current_snapshot())
        RETURNING xid)
    SELECT count(*), (SELECT d.xid FROM deleted d ORDER BY d.xid DESC LIMIT 1) INTO gone, newest FROM deleted;
    UPDATE routing_feed SET forgotten = newest WHERE forgotten < newest;
    RETURN gone;
END $$;
