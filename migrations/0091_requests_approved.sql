-- Requests whose plans move many servers in use of others wait until an operator approves them.

-- As before, but requests and operations that await approval are not overdue.
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
        WHERE state IN ('submitted', 'planned') AND coalesce(starts_at, '-infinity') <= clock_timestamp()
            OR state = 'shrinking'
    UNION ALL SELECT 'operations', operation_id::text, o.state, o.state_at FROM operations o
        WHERE o.state = 'running' AND NOT EXISTS (SELECT FROM capacity_requests q
            WHERE q.operation_id = o.operation_id
                AND (q.starts_at > clock_timestamp() OR q.state = 'awaiting_approval'));

-- The expression of a generated column cannot be changed; its indexes go with it.
ALTER TABLE capacity_requests DROP COLUMN open;
ALTER TABLE capacity_requests
    ADD COLUMN open boolean NOT NULL
        GENERATED ALWAYS AS (state IN ('submitted', 'awaiting_approval', 'planned')) STORED,
    ADD COLUMN awaits_in_use bigint CHECK (awaits_in_use > 0),
    ADD COLUMN approved_in_use bigint CHECK (approved_in_use > 0),
    ADD CONSTRAINT capacity_requests_awaits CHECK (state <> 'awaiting_approval' OR awaits_in_use IS NOT NULL);
COMMENT ON COLUMN capacity_requests.open IS 'whether it is not decided yet';
COMMENT ON COLUMN capacity_requests.awaits_in_use IS 'servers in use of others that its plan would move, when it last awaited approval';
COMMENT ON COLUMN capacity_requests.approved_in_use IS 'servers in use of others that a plan for it may move, as approved; null: the limit of the settings';
CREATE UNIQUE INDEX capacity_requests_one_open ON capacity_requests (reservation) WHERE open;
CREATE INDEX capacity_requests_waiting ON capacity_requests (request_id) WHERE open;

INSERT INTO transitions VALUES
    ('capacity_requests', 'submitted', 'awaiting_approval'),
    -- Approved: it is planned again, on the region as it is then.
    ('capacity_requests', 'awaiting_approval', 'submitted'),
    ('capacity_requests', 'awaiting_approval', 'refused'),
    ('capacity_requests', 'awaiting_approval', 'cancelled'),
    ('capacity_requests', 'awaiting_approval', 'expired');

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
SELECT pg_temp.add_words('audit_trail', 'audit_trail_action_check',
    ARRAY['request_awaits_approval', 'request_approved']);
