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

-- Apart from open_states, which other migrations define again.
CREATE VIEW watched_states AS
    SELECT machine, subject, state, state_at FROM open_states
    UNION ALL SELECT 'unfinished', server, state, state_at FROM unfinished WHERE state = 'unfinished';
COMMENT ON VIEW watched_states IS 'everything that is in a state it should leave again, servers that a move left half-way included';
COMMENT ON COLUMN watched_states.machine IS 'the table its states are of';
COMMENT ON COLUMN watched_states.subject IS 'which one: a server by name, or an id';
COMMENT ON COLUMN watched_states.state IS 'its state';
COMMENT ON COLUMN watched_states.state_at IS 'since when';
