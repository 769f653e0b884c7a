-- LOCK TABLE takes one table after the other. A transaction that has locked rows of a later table and waits for an
-- earlier one makes that a deadlock, and Postgres aborts one of the two. So a wait is cut after half a second, before
-- Postgres looks for deadlocks; the locks held so far are released, and all of them are tried again.
CREATE FUNCTION lock_region() RETURNS void LANGUAGE plpgsql
    SET lock_timeout = '500ms' AS $$
DECLARE
    until timestamptz := clock_timestamp() + interval '60 s';
BEGIN
    LOOP
        BEGIN
            LOCK TABLE target_versions, region, servers, reservations, racks, msbs, datacenters,
                hardware_types, unavailability IN SHARE ROW EXCLUSIVE MODE;
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF clock_timestamp() > until THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(0.01 + 0.04 * random());
    END LOOP;
END $$;
COMMENT ON FUNCTION lock_region IS 'keeps others from changing the region until the transaction ends; they may read it. Waits for a minute at most';
