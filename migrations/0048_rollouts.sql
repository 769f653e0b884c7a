-- A changed host profile reaches the servers that are bound: a rolling reconfiguration, by moves of an
-- origin of their own that keep the owner.

-- Only servers that differ stand here, so that nothing is written for a region in which none does.
CREATE TABLE outdated_profiles (
    server_id integer PRIMARY KEY REFERENCES servers ON DELETE CASCADE,
    reservation_id integer NOT NULL REFERENCES reservations ON DELETE CASCADE,
    host_profile text COLLATE "C",
    refused text
);
COMMENT ON TABLE outdated_profiles IS 'servers whose host profile is not the one that their owner is promised';
COMMENT ON COLUMN outdated_profiles.server_id IS 'the server';
COMMENT ON COLUMN outdated_profiles.reservation_id IS 'its owner when that was noted; a row of another owner counts for nothing';
COMMENT ON COLUMN outdated_profiles.host_profile IS 'the host profile it was last configured with; null: none';
COMMENT ON COLUMN outdated_profiles.refused IS 'what its host said when it refused to be reconfigured; it is not asked again before the profile changes';
CREATE INDEX outdated_profiles_by_reservation ON outdated_profiles (reservation_id);

CREATE TABLE rollouts (
    reservation_id integer PRIMARY KEY REFERENCES reservations ON DELETE CASCADE,
    servers integer NOT NULL CHECK (servers >= 0),
    began_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE rollouts IS 'the last change of host profile of a reservation';
COMMENT ON COLUMN rollouts.reservation_id IS 'the reservation';
COMMENT ON COLUMN rollouts.servers IS 'how many servers had another profile when it began';
COMMENT ON COLUMN rollouts.began_at IS 'when it began';

-- What a host was told: it stays, whatever the reservation is promised by the time the host is done.
ALTER TABLE moves ADD COLUMN host_profile text COLLATE "C";
COMMENT ON COLUMN moves.host_profile IS 'the host profile that the step reconfigure sets, fixed when that step begins; null: none, or the step has not begun';
UPDATE moves m SET host_profile = p.host_profile
    FROM reservations t JOIN promises p USING (promise_id)
    WHERE m.open AND m.state = 'reconfiguring' AND t.reservation = m.target_reservation;

CREATE OR REPLACE FUNCTION pg_temp.add_words(relation regclass, listed text, further text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    held text := (SELECT pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid = relation AND conname = listed);
    words text[] := ARRAY(SELECT m[1] FROM regexp_matches(held, '''([^'']+)''::text', 'g') AS m);
BEGIN
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', relation, listed);
    EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%s IN (%s))', relation, listed,
        substring(held FROM '\((\w+) = ANY'),
        (SELECT string_agg(quote_literal(word), ', ' ORDER BY nr)
            FROM unnest(words || further) WITH ORDINALITY AS w (word, nr)));
END $$;
SELECT pg_temp.add_words('moves', 'moves_origin_check', ARRAY['reconfigure']);
COMMENT ON COLUMN moves.origin IS 'targets: a version of the targets; plan: a request was granted; replacement: a server failed; emergency: somebody asked; give_way: of what an outage left, others need it more; restore: a move was superseded half-way by the owner the server has, whose host profile it may have lost; recall: what was lent comes back; drain: maintenance is due; reconfigure: its owner wants another host profile';
ALTER TABLE moves DROP COLUMN stays;
ALTER TABLE moves ADD COLUMN stays boolean NOT NULL
    GENERATED ALWAYS AS (origin IN ('restore', 'recall', 'drain', 'reconfigure')) STORED;
COMMENT ON COLUMN moves.stays IS 'whether the server keeps its owner';

CREATE OR REPLACE VIEW open_states AS
    -- Moves of servers that are out of use wait for a repair: what is stuck is the repair. And what may
    -- wait for a churn contract is not stuck.
    SELECT 'moves' AS machine, m.server AS subject, m.state, m.state_at FROM moves m
        WHERE m.open
            AND NOT EXISTS (SELECT FROM servers_out_of_use(false) AS o WHERE o = m.server_id)
            AND NOT (m.state = 'pending' AND m.origin = 'reconfigure')
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
            WHERE q.operation_id = o.operation_id AND q.starts_at > clock_timestamp());
