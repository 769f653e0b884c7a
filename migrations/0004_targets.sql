-- Who decided what, when: solves, and the versions of the targets they end in.

CREATE TABLE target_versions (
    version bigint PRIMARY KEY,
    -- Unique, and one less: of two that publish on top of the same version one fails.
    parent bigint UNIQUE REFERENCES target_versions,
    origin text NOT NULL CHECK (origin IN ('empty', 'import', 'publication')),
    publication_id uuid NOT NULL UNIQUE,
    published_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT target_versions_chain
        CHECK (CASE WHEN version = 0 THEN parent IS NULL ELSE parent IS NOT NULL AND parent = version - 1 END),
    CONSTRAINT target_versions_origin CHECK ((version = 0) = (origin = 'empty'))
);
COMMENT ON TABLE target_versions IS 'versions of the targets: a chain without holes or forks; rows are only ever added';
COMMENT ON COLUMN target_versions.version IS '0 for the empty region, then one more each time';
COMMENT ON COLUMN target_versions.parent IS 'the version it was made on top of';
COMMENT ON COLUMN target_versions.origin IS 'empty (version 0), import (a snapshot was loaded) or publication';
COMMENT ON COLUMN target_versions.publication_id IS 'the publisher''s own id, by which one whose answer was lost learns that it succeeded';
COMMENT ON COLUMN target_versions.published_at IS 'when';
CREATE TRIGGER target_versions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON target_versions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
INSERT INTO target_versions (version, origin, publication_id) VALUES (0, 'empty', gen_random_uuid());

CREATE TABLE target_changes (
    version bigint NOT NULL,
    server text COLLATE "C" NOT NULL,
    target_reservation text COLLATE "C",
    taken boolean NOT NULL,
    PRIMARY KEY (version, server)
);
COMMENT ON TABLE target_changes IS 'what a publication asked for, server by server';
COMMENT ON COLUMN target_changes.version IS 'the version it was published as';
COMMENT ON COLUMN target_changes.server IS 'the server, by name: it may be gone by now';
COMMENT ON COLUMN target_changes.target_reservation IS 'who should hold it; null: nobody';
COMMENT ON COLUMN target_changes.taken IS 'false: skipped, because its binding had moved since the snapshot';
-- A foreign key checks row by row, which takes a third of a publication of 50,000 servers. Versions
-- are never deleted or changed, so looking once at all new rows of a statement says the same.
CREATE FUNCTION check_versions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    unknown bigint;
BEGIN
    EXECUTE format('SELECT w.version FROM (SELECT DISTINCT %I AS version FROM written) w '
        'WHERE w.version IS NOT NULL AND NOT EXISTS '
        '(SELECT FROM target_versions v WHERE v.version = w.version) LIMIT 1', TG_ARGV[0]) INTO unknown;
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION '%: there is no version % of the targets', TG_TABLE_NAME, unknown
            USING ERRCODE = 'foreign_key_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER target_changes_version AFTER INSERT ON target_changes
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION check_versions('version');
-- Old versions may be deleted to save space; what is there is what was published.
CREATE TRIGGER target_changes_unchanged BEFORE UPDATE ON target_changes
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE solves (
    solve_id uuid PRIMARY KEY,
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    cause text NOT NULL CHECK (cause IN ('schedule', 'demand', 'event', 'replay')),
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    parent bigint NOT NULL REFERENCES target_versions,
    version bigint UNIQUE REFERENCES target_versions,
    reason text CHECK (reason IN
        ('crashed', 'out_of_time', 'out_of_memory', 'audit_refused', 'result_unreadable', 'cancelled')),
    snapshot_url text,
    result_url text,
    CONSTRAINT solves_published CHECK ((state = 'published') = (version IS NOT NULL)),
    CONSTRAINT solves_failed CHECK ((state = 'failed') = (reason IS NOT NULL)),
    CONSTRAINT solves_order CHECK (version > parent)
);
COMMENT ON TABLE solves IS 'every solve, whatever became of it';
COMMENT ON COLUMN solves.solve_id IS 'its id, ordered by time';
COMMENT ON COLUMN solves.state IS 'see transitions';
COMMENT ON COLUMN solves.state_at IS 'since when it is in this state';
COMMENT ON COLUMN solves.cause IS 'why it was started';
COMMENT ON COLUMN solves.requested_at IS 'when it was asked for';
COMMENT ON COLUMN solves.parent IS 'the version of its snapshot';
COMMENT ON COLUMN solves.version IS 'the version its targets were published as';
COMMENT ON COLUMN solves.reason IS 'of a failed one: why';
COMMENT ON COLUMN solves.snapshot_url IS 'where its snapshot is kept';
COMMENT ON COLUMN solves.result_url IS 'where its result is kept';
CREATE UNIQUE INDEX solves_one_running ON solves ((true)) WHERE state = 'running';
INSERT INTO transitions VALUES
    ('solves', 'new', 'requested'),
    ('solves', 'requested', 'running'),
    ('solves', 'requested', 'failed'),
    ('solves', 'running', 'requested'),
    ('solves', 'running', 'published'),
    ('solves', 'running', 'stale'),
    ('solves', 'running', 'failed');
CREATE TRIGGER solves_transition_insert BEFORE INSERT ON solves
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER solves_transition_update BEFORE UPDATE OF state ON solves
    FOR EACH ROW EXECUTE FUNCTION check_transition();

CREATE TABLE solve_reports (
    solve_id uuid PRIMARY KEY REFERENCES solves ON DELETE CASCADE,
    report jsonb NOT NULL CHECK (jsonb_typeof(report) = 'object')
);
COMMENT ON TABLE solve_reports IS 'what solves say of themselves, apart from solves because they are large';
COMMENT ON COLUMN solve_reports.solve_id IS 'the solve';
COMMENT ON COLUMN solve_reports.report IS 'report.json of its result';

CREATE TABLE plans (
    plan_id uuid PRIMARY KEY,
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    base bigint NOT NULL REFERENCES target_versions,
    question jsonb NOT NULL CHECK (jsonb_typeof(question) = 'object'),
    answer jsonb CHECK (jsonb_typeof(answer) = 'object'),
    CONSTRAINT plans_answered CHECK ((state = 'answered') = (answer IS NOT NULL))
);
COMMENT ON TABLE plans IS 'what-ifs: changes nobody has made, and what a solve says of them';
COMMENT ON COLUMN plans.plan_id IS 'its id, ordered by time';
COMMENT ON COLUMN plans.state IS 'see transitions';
COMMENT ON COLUMN plans.state_at IS 'since when it is in this state';
COMMENT ON COLUMN plans.base IS 'the version it starts from';
COMMENT ON COLUMN plans.question IS 'the changes';
COMMENT ON COLUMN plans.answer IS 'what came out';
INSERT INTO transitions VALUES
    ('plans', 'new', 'asked'), ('plans', 'asked', 'answered'), ('plans', 'asked', 'failed');
CREATE TRIGGER plans_transition_insert BEFORE INSERT ON plans
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER plans_transition_update BEFORE UPDATE OF state ON plans
    FOR EACH ROW EXECUTE FUNCTION check_transition();
