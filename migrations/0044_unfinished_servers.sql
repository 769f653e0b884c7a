-- Servers that a move left half-way: wiped, or with another owner's host profile, and neither their old owner's nor
-- their new one's. They stay with the old owner by name, and an event of their own takes them out of use, so that
-- everything that counts or offers servers leaves them out: sums, certificates, solves, spares, loans, emergencies.
-- The mover restores them by moves of origin restore, again and again, or a new target hands them over.
CREATE TABLE unfinished (
    unfinished_id uuid PRIMARY KEY,
    server_id integer NOT NULL REFERENCES servers ON DELETE CASCADE,
    server text COLLATE "C" NOT NULL,
    source_reservation text COLLATE "C",
    target_reservation text COLLATE "C",
    move_id uuid NOT NULL,
    step text NOT NULL CHECK (step IN ('preempting', 'cleaning_up', 'reconfiguring')),
    reason text NOT NULL,
    detail text,
    event_id entity_name NOT NULL,
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    retry_at timestamptz NOT NULL
);
COMMENT ON TABLE unfinished IS 'servers that a move left half-way, and what became of them';
COMMENT ON COLUMN unfinished.unfinished_id IS 'its id, ordered by time';
COMMENT ON COLUMN unfinished.server_id IS 'the server';
COMMENT ON COLUMN unfinished.server IS 'the server, by name';
COMMENT ON COLUMN unfinished.source_reservation IS 'who owned it, and does by name; null: nobody';
COMMENT ON COLUMN unfinished.target_reservation IS 'who was to; null: nobody';
COMMENT ON COLUMN unfinished.move_id IS 'the last move that failed';
COMMENT ON COLUMN unfinished.step IS 'the step at which it did, by the state of the move';
COMMENT ON COLUMN unfinished.reason IS 'why, as in moves';
COMMENT ON COLUMN unfinished.detail IS 'what the host said, for people';
COMMENT ON COLUMN unfinished.event_id IS 'the event that takes it out of use meanwhile';
COMMENT ON COLUMN unfinished.state IS 'see transitions';
COMMENT ON COLUMN unfinished.state_at IS 'since when it is in this state';
COMMENT ON COLUMN unfinished.attempts IS 'how often restoring it failed';
COMMENT ON COLUMN unfinished.retry_at IS 'when it is to be restored next';
CREATE UNIQUE INDEX unfinished_one_open ON unfinished (server_id) WHERE state = 'unfinished';
CREATE INDEX unfinished_by_server ON unfinished (server_id);
INSERT INTO transitions VALUES
    ('unfinished', 'new', 'unfinished'),
    -- Its old owner has it again.
    ('unfinished', 'unfinished', 'restored'),
    -- Another owner has it.
    ('unfinished', 'unfinished', 'handed_over');
CREATE TRIGGER unfinished_transition_insert BEFORE INSERT ON unfinished
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER unfinished_transition_update BEFORE UPDATE OF state ON unfinished
    FOR EACH ROW EXECUTE FUNCTION check_transition();

-- What a move waits for. A server that is out of use only because a move left it half-way waits for a move.
CREATE FUNCTION servers_under_repair() RETURNS SETOF integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 AS $$
BEGIN
    RETURN QUERY SELECT DISTINCT u.server_id FROM unavailable_servers u
        WHERE u.kind <> 'planned_maintenance' AND u.event_id NOT LIKE 'unfinished/%';
END $$;
COMMENT ON FUNCTION servers_under_repair IS 'every server that an event covers now, planned maintenance and moves that were left half-way apart';

CREATE OR REPLACE VIEW open_states AS
    -- Moves of servers that are out of use wait for a repair: what is stuck is the repair. And what may
    -- wait for a churn contract is not stuck.
    SELECT 'moves' AS machine, m.server AS subject, m.state, m.state_at FROM moves m
        WHERE m.open
            AND NOT EXISTS (SELECT FROM servers_under_repair() AS o WHERE o = m.server_id)
            AND NOT (m.state = 'pending' AND m.in_use AND m.origin IN ('targets', 'plan') AND EXISTS
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
        WHERE state = 'asked'
    -- One whose time is to come only waits for it.
    UNION ALL SELECT 'capacity_requests', reservation, state,
            greatest(state_at, coalesce(starts_at, state_at)) FROM capacity_requests
        WHERE open AND coalesce(starts_at, '-infinity') <= clock_timestamp() OR state = 'shrinking'
    UNION ALL SELECT 'operations', operation_id::text, o.state, o.state_at FROM operations o
        WHERE o.state = 'running' AND NOT EXISTS (SELECT FROM capacity_requests q
            WHERE q.operation_id = o.operation_id AND q.starts_at > clock_timestamp())
    UNION ALL SELECT 'unfinished', server, state, state_at FROM unfinished WHERE state = 'unfinished';
