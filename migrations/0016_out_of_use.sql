-- What is out of use, for statements that leave it out. A planner takes every event for one of a
-- datacenter and unavailable_servers for a hundred million rows; beside an emergency's stock it then
-- compared each server with each event. How many rows this has is said here, and they are read once.
CREATE FUNCTION servers_out_of_use(planned boolean) RETURNS SETOF integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 AS $$
BEGIN
    RETURN QUERY SELECT DISTINCT u.server_id FROM unavailable_servers u
        WHERE planned OR u.kind <> 'planned_maintenance';
END $$;
COMMENT ON FUNCTION servers_out_of_use IS 'every server that an event covers now, once; planned: by planned maintenance as well';

CREATE OR REPLACE VIEW open_states AS
    -- Moves of servers that are out of use wait for a repair: what is stuck is the repair. And what may
    -- wait for a churn contract is not stuck.
    SELECT 'moves' AS machine, m.server AS subject, m.state, m.state_at FROM moves m
        WHERE m.open
            AND NOT EXISTS (SELECT FROM servers_out_of_use(false) AS o WHERE o = m.server_id)
            AND NOT (m.state = 'pending' AND m.in_use AND m.origin = 'targets' AND EXISTS
                (SELECT FROM churn_contracts c JOIN reservations r USING (reservation_id)
                    WHERE r.reservation = m.source_reservation))
    UNION ALL SELECT 'solves', solve_id::text, state, state_at FROM solves
        WHERE state IN ('requested', 'running')
    UNION ALL SELECT 'jobs', job_id::text, state, state_at FROM jobs
        WHERE state IN ('waiting', 'running')
    UNION ALL SELECT 'replacements', server, state, state_at FROM replacements
        WHERE state IN ('owed', 'swapped')
    UNION ALL SELECT 'maintenance', window_id::text, state, state_at FROM maintenance WHERE open
    UNION ALL SELECT 'emergencies', emergency_id::text, state, state_at FROM emergencies
        WHERE state = 'asked';
