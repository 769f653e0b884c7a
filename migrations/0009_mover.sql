-- What carries moves out. Moves are opened, bound and ended with an entry of the audit trail; their
-- steps in between leave none.

-- One mover acts at a time, and any number stand by. Whoever takes over counts the epoch up, and every
-- write of a mover names its epoch: one that was cut off and comes back writes nothing.
CREATE TABLE mover (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    holder text,
    lease_until timestamptz NOT NULL DEFAULT '-infinity',
    stopped_by text,
    stopped_why text,
    CONSTRAINT mover_stopped CHECK ((stopped_by IS NULL) = (stopped_why IS NULL))
);
COMMENT ON TABLE mover IS 'which mover acts, and whether it may';
COMMENT ON COLUMN mover.only_row IS 'makes a second row impossible';
COMMENT ON COLUMN mover.epoch IS 'how often another mover took over: what an earlier one writes is refused';
COMMENT ON COLUMN mover.holder IS 'the mover that acts';
COMMENT ON COLUMN mover.lease_until IS 'until when, unless the lease is renewed';
COMMENT ON COLUMN mover.stopped_by IS 'who pulled the stop switch; null: it is not pulled. No step begins then';
COMMENT ON COLUMN mover.stopped_why IS 'why';
INSERT INTO mover DEFAULT VALUES;

CREATE FUNCTION check_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.epoch <> OLD.epoch + (NEW.holder IS DISTINCT FROM OLD.holder)::int THEN
        RAISE EXCEPTION 'the epoch counts movers one by one'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'mover_epoch';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER mover_epoch BEFORE UPDATE OR DELETE ON mover
    FOR EACH ROW EXECUTE FUNCTION check_epoch();

ALTER TABLE moves ADD COLUMN origin text NOT NULL DEFAULT 'targets'
    CHECK (origin IN ('targets', 'restore'));
ALTER TABLE moves ADD COLUMN in_use boolean NOT NULL DEFAULT false;
ALTER TABLE moves ADD COLUMN reason text CHECK (reason IN
    ('newer_target', 'snapshot_loaded', 'server_removed', 'host_refused', 'took_too_long'));
ALTER TABLE moves ADD COLUMN detail text;
ALTER TABLE moves ADD CONSTRAINT moves_reason CHECK
    ((reason IS NOT NULL) = (state IN ('superseded', 'failed', 'expired')));
COMMENT ON COLUMN moves.origin IS 'targets: a version of the targets; restore: a move was superseded half-way by the owner the server has, whose host profile it may have lost';
COMMENT ON COLUMN moves.in_use IS 'whether containers of a guaranteed reservation ran on it when it was opened';
COMMENT ON COLUMN moves.reason IS 'why it ended without being bound';
COMMENT ON COLUMN moves.detail IS 'what the host said, for people';
-- What is under way, and what was bound of late: limits count both.
CREATE INDEX moves_under_way ON moves (opened_at, move_id) WHERE open;
CREATE INDEX moves_by_end ON moves (state_at) WHERE state = 'bound';

ALTER TABLE audit_trail DROP CONSTRAINT audit_trail_action_check;
ALTER TABLE audit_trail ADD CONSTRAINT audit_trail_action_check CHECK (action IN
    ('snapshot_loaded', 'targets_published', 'unavailability_recorded', 'unavailability_cleared',
     'moves_opened', 'server_bound', 'move_ended', 'mover_stopped', 'mover_resumed'));
