-- Everything that is in a state it should leave again: for those who look for what is stuck.
CREATE VIEW open_states AS
    -- Moves of servers that are out of use wait for a repair: what is stuck is the repair. And what may
    -- wait for a churn contract is not stuck.
    SELECT 'moves' AS machine, m.server AS subject, m.state, m.state_at FROM moves m
        WHERE m.open AND NOT EXISTS (SELECT FROM unavailable_servers o
            WHERE o.server_id = m.server_id AND o.kind <> 'planned_maintenance')
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
COMMENT ON VIEW open_states IS 'everything that is in a state it should leave again';
COMMENT ON COLUMN open_states.machine IS 'the table its states are of';
COMMENT ON COLUMN open_states.subject IS 'which one: a server by name, or an id';
COMMENT ON COLUMN open_states.state IS 'its state';
COMMENT ON COLUMN open_states.state_at IS 'since when';
