-- What owners ask for, and what became of it. A request changes one reservation; until it is granted
-- the promise that was given before holds.

-- Lists of words that several migrations add to, whichever of them comes first.
CREATE FUNCTION pg_temp.add_words(relation regclass, listed text, further text[]) RETURNS void
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
SELECT pg_temp.add_words('audit_trail', 'audit_trail_action_check', ARRAY['request_submitted',
    'request_refused', 'request_cancelled', 'plan_applied', 'reservation_removed', 'quota_set']);
-- What a plan decides is a decision between two solves: a solve under way skips its servers.
SELECT pg_temp.add_words('servers', 'servers_target_origin_check', ARRAY['plan']);
SELECT pg_temp.add_words('moves', 'moves_origin_check', ARRAY['plan']);
COMMENT ON COLUMN moves.origin IS 'targets: a version of the targets; plan: a request was granted; replacement: a server failed; emergency: somebody asked; give_way: of what an outage left, others need it more; restore: a move was superseded half-way by the owner the server has, whose host profile it may have lost; recall: what was lent comes back; drain: maintenance is due';
-- For publications, which leave alone what was granted after their snapshot.
CREATE INDEX audit_trail_plans_applied ON audit_trail (seq) WHERE action = 'plan_applied';

ALTER TABLE reservations ADD COLUMN labels jsonb NOT NULL DEFAULT '{}'
    CHECK (jsonb_typeof(labels) = 'object');
COMMENT ON COLUMN reservations.labels IS 'what its owner calls it by: words by names';
CREATE INDEX reservations_by_label ON reservations USING gin (labels jsonb_path_ops);

CREATE TABLE operations (
    operation_id uuid PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('request', 'apply')),
    subject_id uuid NOT NULL,
    owner text,
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by entity_name NOT NULL,
    result jsonb CHECK (jsonb_typeof(result) = 'object'),
    CONSTRAINT operations_ended CHECK ((state = 'running') = (result IS NULL))
);
COMMENT ON TABLE operations IS 'work that somebody waits for';
COMMENT ON COLUMN operations.operation_id IS 'its id, ordered by time';
COMMENT ON COLUMN operations.kind IS 'request: one is decided; apply: a plan is carried out';
COMMENT ON COLUMN operations.subject_id IS 'the request, or the plan';
COMMENT ON COLUMN operations.owner IS 'the owner it is for; null: several';
COMMENT ON COLUMN operations.state IS 'see transitions';
COMMENT ON COLUMN operations.state_at IS 'since when it is in this state';
COMMENT ON COLUMN operations.created_at IS 'when it was begun';
COMMENT ON COLUMN operations.created_by IS 'who began it';
COMMENT ON COLUMN operations.result IS 'what came of it; of a failed one, the problem';
INSERT INTO transitions VALUES
    ('operations', 'new', 'running'),
    ('operations', 'running', 'done'),
    ('operations', 'running', 'failed');
CREATE TRIGGER operations_transition_insert BEFORE INSERT ON operations
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER operations_transition_update BEFORE UPDATE OF state ON operations
    FOR EACH ROW EXECUTE FUNCTION check_transition();

CREATE TABLE capacity_requests (
    request_id uuid PRIMARY KEY,
    reservation text COLLATE "C" NOT NULL CHECK (char_length(reservation) BETWEEN 1 AND 128),
    owner text NOT NULL,
    change text NOT NULL CHECK (change IN ('create', 'change', 'remove')),
    asked jsonb NOT NULL CHECK (jsonb_typeof(asked) = 'object'),
    asked_micro bigint CHECK (asked_micro BETWEEN 0 AND 1000000000000000),
    policy text NOT NULL CHECK (policy IN ('all', 'at_least', 'best_effort')),
    starts_at timestamptz,
    ends_at timestamptz,
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    granted_micro bigint CHECK (granted_micro BETWEEN 0 AND 1000000000000000),
    answer jsonb CHECK (jsonb_typeof(answer) = 'object'),
    plan_id uuid,
    operation_id uuid REFERENCES operations,
    version bigint NOT NULL DEFAULT 1 CHECK (version >= 1),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by entity_name NOT NULL,
    worker text,
    lease_until timestamptz,
    open boolean NOT NULL GENERATED ALWAYS AS (state IN ('submitted', 'planned')) STORED,
    in_force boolean NOT NULL GENERATED ALWAYS AS
        (state IN ('granted', 'partially_granted', 'degraded', 'shrinking')) STORED,
    CONSTRAINT capacity_requests_times CHECK (ends_at > starts_at),
    CONSTRAINT capacity_requests_lease CHECK ((worker IS NULL) = (lease_until IS NULL)),
    CONSTRAINT capacity_requests_granted CHECK
        (state NOT IN ('granted', 'partially_granted', 'degraded', 'shrinking') OR granted_micro IS NOT NULL),
    CONSTRAINT capacity_requests_operation CHECK (state = 'draft' OR operation_id IS NOT NULL)
);
COMMENT ON TABLE capacity_requests IS 'what owners asked for, each a change to one reservation, and what became of it';
COMMENT ON COLUMN capacity_requests.request_id IS 'its id, ordered by time';
COMMENT ON COLUMN capacity_requests.reservation IS 'the reservation, by name: it may not be there yet, or any more';
COMMENT ON COLUMN capacity_requests.owner IS 'the business unit that asks';
COMMENT ON COLUMN capacity_requests.change IS 'create: a new reservation; change: one that is there; remove: its end';
COMMENT ON COLUMN capacity_requests.asked IS 'all that is asked, as broker::Asking; what is looked for stands in columns as well';
COMMENT ON COLUMN capacity_requests.asked_micro IS 'the capacity asked for in micro-RRU; null: it stays as it is';
COMMENT ON COLUMN capacity_requests.policy IS 'all: in full or not at all; at_least: so much or more; best_effort: what there is';
COMMENT ON COLUMN capacity_requests.starts_at IS 'when it is to be granted; null: at once';
COMMENT ON COLUMN capacity_requests.ends_at IS 'when the reservation ends; null: when somebody says so';
COMMENT ON COLUMN capacity_requests.state IS 'see transitions';
COMMENT ON COLUMN capacity_requests.state_at IS 'since when it is in this state';
COMMENT ON COLUMN capacity_requests.granted_micro IS 'what was promised, in micro-RRU';
COMMENT ON COLUMN capacity_requests.answer IS 'what was said to it: the plan, or why not and what instead';
COMMENT ON COLUMN capacity_requests.plan_id IS 'the plan that grants it';
COMMENT ON COLUMN capacity_requests.operation_id IS 'what is waited on for its answer';
COMMENT ON COLUMN capacity_requests.version IS 'counts what owners and decisions changed of it';
COMMENT ON COLUMN capacity_requests.created_at IS 'when it was asked';
COMMENT ON COLUMN capacity_requests.created_by IS 'who asked';
COMMENT ON COLUMN capacity_requests.worker IS 'who decides it now';
COMMENT ON COLUMN capacity_requests.lease_until IS 'until when; another may take it then';
COMMENT ON COLUMN capacity_requests.open IS 'whether it waits for an answer';
COMMENT ON COLUMN capacity_requests.in_force IS 'whether it is what the reservation is promised by';
CREATE UNIQUE INDEX capacity_requests_one_open ON capacity_requests (reservation) WHERE open;
CREATE UNIQUE INDEX capacity_requests_one_in_force ON capacity_requests (reservation) WHERE in_force;
CREATE INDEX capacity_requests_by_reservation ON capacity_requests (reservation, request_id);
CREATE INDEX capacity_requests_waiting ON capacity_requests (request_id) WHERE open;
INSERT INTO transitions
    SELECT 'capacity_requests', source, target FROM (VALUES
        ('new', ARRAY['draft', 'submitted', 'planned']),
        ('draft', ARRAY['submitted', 'cancelled']),
        ('submitted', ARRAY['planned', 'refused', 'cancelled', 'expired']),
        -- Back to submitted: the region moved, or whoever decided it was lost.
        ('planned', ARRAY['submitted', 'granted', 'partially_granted', 'shrinking', 'refused', 'cancelled']),
        ('granted', ARRAY['partially_granted', 'degraded', 'shrinking', 'expired']),
        ('partially_granted', ARRAY['granted', 'degraded', 'shrinking', 'expired']),
        ('degraded', ARRAY['granted', 'partially_granted', 'shrinking', 'expired']),
        ('shrinking', ARRAY['granted', 'partially_granted', 'degraded', 'expired'])
    ) AS t (source, targets), unnest(t.targets) AS target;
CREATE TRIGGER capacity_requests_transition_insert BEFORE INSERT ON capacity_requests
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER capacity_requests_transition_update BEFORE UPDATE OF state ON capacity_requests
    FOR EACH ROW EXECUTE FUNCTION check_transition();

CREATE TABLE quotas (
    owner text PRIMARY KEY CHECK (char_length(owner) BETWEEN 1 AND 128),
    capacity_micro bigint NOT NULL CHECK (capacity_micro BETWEEN 0 AND 1000000000000000),
    set_by entity_name NOT NULL,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE quotas IS 'how much may be promised to an owner; no row: as much as there is';
COMMENT ON COLUMN quotas.owner IS 'the business unit';
COMMENT ON COLUMN quotas.capacity_micro IS 'what its guaranteed reservations may be promised together, in micro-RRU';
COMMENT ON COLUMN quotas.set_by IS 'who set it';
COMMENT ON COLUMN quotas.set_at IS 'when';

-- Requests over HTTP that are sent again, because an answer was lost.
CREATE TABLE idempotency_keys (
    actor entity_name NOT NULL,
    key text COLLATE "C" NOT NULL CHECK (char_length(key) BETWEEN 1 AND 255),
    claim_id uuid NOT NULL,
    digest bytea NOT NULL CHECK (length(digest) = 32),
    claimed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    answer jsonb CHECK (jsonb_typeof(answer) = 'object'),
    PRIMARY KEY (actor, key)
);
COMMENT ON TABLE idempotency_keys IS 'keys that callers sent with what they asked, and what was answered; kept for a day';
COMMENT ON COLUMN idempotency_keys.actor IS 'who sent it';
COMMENT ON COLUMN idempotency_keys.key IS 'the key';
COMMENT ON COLUMN idempotency_keys.claim_id IS 'of the one request that may answer';
COMMENT ON COLUMN idempotency_keys.digest IS 'SHA-256 of what was asked';
COMMENT ON COLUMN idempotency_keys.claimed_at IS 'when';
COMMENT ON COLUMN idempotency_keys.answer IS 'the first answer; null: it is being worked on';
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (claimed_at);

CREATE OR REPLACE VIEW open_states AS
    -- Moves of servers that are out of use wait for a repair: what is stuck is the repair. And what may
    -- wait for a churn contract is not stuck.
    SELECT 'moves' AS machine, m.server AS subject, m.state, m.state_at FROM moves m
        WHERE m.open
            AND NOT EXISTS (SELECT FROM servers_out_of_use(false) AS o WHERE o = m.server_id)
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
