-- Work that any number of workers take, on any machine that reaches this database. It is no part of
-- the region: taking a job, renewing its lease and giving it back leave no entry in the audit trail.

CREATE TABLE jobs (
    job_id uuid PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('solve', 'replay')),
    batch_id uuid,
    task jsonb NOT NULL CHECK (jsonb_typeof(task) = 'object'),
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    losses integer NOT NULL DEFAULT 0 CHECK (losses >= 0),
    worker text,
    lease_until timestamptz,
    outcome jsonb CHECK (jsonb_typeof(outcome) = 'object'),
    failure text,
    CONSTRAINT jobs_lease CHECK
        ((state = 'running') = (lease_until IS NOT NULL) AND (state = 'running') = (worker IS NOT NULL)),
    CONSTRAINT jobs_done CHECK ((state = 'done') = (outcome IS NOT NULL)),
    CONSTRAINT jobs_failed CHECK ((state = 'failed') = (failure IS NOT NULL))
);
COMMENT ON TABLE jobs IS 'work asked for, under way and ended; what failed for good stays to be looked at';
COMMENT ON COLUMN jobs.job_id IS 'its id, ordered by time; of a solve, the solve''s';
COMMENT ON COLUMN jobs.kind IS 'solve or replay';
COMMENT ON COLUMN jobs.batch_id IS 'jobs that were asked for together and are waited for together';
COMMENT ON COLUMN jobs.task IS 'what is to be done, by kind';
COMMENT ON COLUMN jobs.state IS 'see transitions';
COMMENT ON COLUMN jobs.state_at IS 'since when it is in this state';
COMMENT ON COLUMN jobs.requested_at IS 'when it was asked for';
COMMENT ON COLUMN jobs.attempt IS 'how often it was taken: whoever took it before may write nothing any more';
COMMENT ON COLUMN jobs.losses IS 'how often its worker was lost';
COMMENT ON COLUMN jobs.worker IS 'who has it';
COMMENT ON COLUMN jobs.lease_until IS 'until when, unless the lease is renewed';
COMMENT ON COLUMN jobs.outcome IS 'what came of it, by kind';
COMMENT ON COLUMN jobs.failure IS 'why it failed for good';
CREATE INDEX jobs_open ON jobs (requested_at, job_id) WHERE state IN ('waiting', 'running');
CREATE INDEX jobs_by_batch ON jobs (batch_id) WHERE batch_id IS NOT NULL;
-- Never two solves of a region at once.
CREATE UNIQUE INDEX jobs_one_solve ON jobs ((true)) WHERE kind = 'solve' AND state = 'running';

INSERT INTO transitions VALUES
    ('jobs', 'new', 'waiting'),
    ('jobs', 'waiting', 'running'),
    ('jobs', 'waiting', 'failed'),
    ('jobs', 'running', 'waiting'),
    -- Its worker was lost; another has it.
    ('jobs', 'running', 'running'),
    ('jobs', 'running', 'done'),
    ('jobs', 'running', 'failed');
CREATE TRIGGER jobs_transition_insert BEFORE INSERT ON jobs
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER jobs_transition_update BEFORE UPDATE OF state ON jobs
    FOR EACH ROW EXECUTE FUNCTION check_transition();

CREATE FUNCTION check_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.attempt <> OLD.attempt + (NEW.attempt > OLD.attempt)::int
        OR (NEW.worker IS DISTINCT FROM OLD.worker AND NEW.worker IS NOT NULL AND NEW.attempt = OLD.attempt)
    THEN
        RAISE EXCEPTION 'job %: attempts are counted one by one, and every worker is a new one', OLD.job_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'jobs_attempt';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER jobs_attempt BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION check_attempt();

CREATE FUNCTION ring_for_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('jobs', '');
    RETURN NULL;
END $$;
CREATE TRIGGER jobs_doorbell AFTER INSERT OR UPDATE OF state ON jobs
    FOR EACH STATEMENT EXECUTE FUNCTION ring_for_jobs();

-- What a solve needs to be told from others, and replayed.
ALTER TABLE solves ADD COLUMN started_at timestamptz;
ALTER TABLE solves ADD COLUMN seq bigint CHECK (seq >= 0);
ALTER TABLE solves ADD COLUMN config jsonb CHECK (jsonb_typeof(config) = 'object');
ALTER TABLE solves ADD COLUMN failure text;
ALTER TABLE solves ADD COLUMN forgotten_at timestamptz;
COMMENT ON COLUMN solves.started_at IS 'when a worker took it, the last one that did';
COMMENT ON COLUMN solves.seq IS 'the last entry of the audit trail that its snapshot contains';
COMMENT ON COLUMN solves.config IS 'the settings it was solved with';
COMMENT ON COLUMN solves.forgotten_at IS 'when what was kept of it, its report included, was deleted';
COMMENT ON COLUMN solves.failure IS 'of one that did not end in a version: what happened, for people';
ALTER TABLE solves DROP CONSTRAINT solves_reason_check;
ALTER TABLE solves ADD CONSTRAINT solves_reason_check CHECK (reason IN
    ('crashed', 'out_of_time', 'out_of_memory', 'audit_refused', 'result_unreadable', 'archive_failed',
     'not_publishable', 'workers_lost', 'cancelled'));
CREATE INDEX solves_by_time ON solves (requested_at);
