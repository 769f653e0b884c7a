-- Plans: what changes would come to, really solved. The table of migration 4 was never written.

DROP TABLE plans;
DELETE FROM transitions WHERE machine = 'plans';

CREATE TABLE plans (
    plan_id uuid PRIMARY KEY,
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    made_by entity_name NOT NULL,
    expires_at timestamptz NOT NULL,
    owners text[] NOT NULL,
    changes jsonb NOT NULL CHECK (jsonb_typeof(changes) = 'array'),
    base bigint NOT NULL REFERENCES target_versions,
    seq bigint NOT NULL CHECK (seq >= 0),
    taken_at timestamptz NOT NULL,
    answers jsonb NOT NULL CHECK (jsonb_typeof(answers) = 'array'),
    targets jsonb NOT NULL CHECK (jsonb_typeof(targets) = 'array'),
    CONSTRAINT plans_times CHECK (expires_at > made_at)
);
COMMENT ON TABLE plans IS 'changes and what a solve says of them: made to be looked at, and applied or not';
COMMENT ON COLUMN plans.plan_id IS 'its id, ordered by time';
COMMENT ON COLUMN plans.state IS 'see transitions';
COMMENT ON COLUMN plans.state_at IS 'since when it is in this state';
COMMENT ON COLUMN plans.made_at IS 'when it was made';
COMMENT ON COLUMN plans.made_by IS 'who asked for it';
COMMENT ON COLUMN plans.expires_at IS 'from when on it is not applied any more';
COMMENT ON COLUMN plans.owners IS 'whose reservations it changes';
COMMENT ON COLUMN plans.changes IS 'the changes, each as broker::Asking';
COMMENT ON COLUMN plans.base IS 'the version of the targets it was made on';
COMMENT ON COLUMN plans.seq IS 'the last entry of the audit trail that it knows';
COMMENT ON COLUMN plans.taken_at IS 'the instant of the region it was made on';
COMMENT ON COLUMN plans.answers IS 'one document for each change, of the format ras-plan/1';
COMMENT ON COLUMN plans.targets IS 'the servers that change their holder: [server, to], to null: to nobody';
CREATE INDEX plans_by_end ON plans (expires_at);
INSERT INTO transitions VALUES
    ('plans', 'new', 'made'),
    ('plans', 'made', 'applied'),
    ('plans', 'made', 'stale'),
    ('plans', 'made', 'expired');
CREATE TRIGGER plans_transition_insert BEFORE INSERT ON plans
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER plans_transition_update BEFORE UPDATE OF state ON plans
    FOR EACH ROW EXECUTE FUNCTION check_transition();
