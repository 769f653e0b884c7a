-- What giving way does not count: the certificate takes maintenance off that cannot be recalled in time.
CREATE FUNCTION servers_not_back(within_minutes integer) RETURNS SETOF integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 AS $$
DECLARE
    -- Work is recalled when an MSB is lost, and at no other time.
    recalled boolean := EXISTS (SELECT FROM outages WHERE ended_at IS NULL);
BEGIN
    RETURN QUERY SELECT DISTINCT u.server_id FROM unavailable_servers u
        JOIN unavailability e USING (event_id)
        WHERE u.kind <> 'planned_maintenance' OR NOT recalled
            OR coalesce(e.recall_minutes > within_minutes, true);
END $$;
COMMENT ON FUNCTION servers_not_back IS 'every server that an event covers now, once, but for those in maintenance that a lost MSB recalls within so many minutes';
