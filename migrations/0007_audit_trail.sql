-- Everything that was changed, by whom, in the order it became visible. The numbers are the truth
-- subscribers go by: each transaction takes its numbers from the clock below as the last thing it
-- does, and the clock stays locked until the transaction ends. So numbers become visible in their
-- order and without holes, and whoever has read up to n never finds one below n later.

CREATE TABLE trail_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    seq bigint NOT NULL,
    at timestamptz NOT NULL
);
COMMENT ON TABLE trail_clock IS 'the last number of the audit trail';
COMMENT ON COLUMN trail_clock.only_row IS 'makes a second row impossible';
COMMENT ON COLUMN trail_clock.seq IS 'the number';
COMMENT ON COLUMN trail_clock.at IS 'its time';
INSERT INTO trail_clock (seq, at) VALUES (0, clock_timestamp());

CREATE FUNCTION check_trail_clock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.seq <> OLD.seq + 1 OR NEW.at < OLD.at THEN
        RAISE EXCEPTION 'the clock of the audit trail only goes forward, by one'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'trail_clock_forward';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER trail_clock_forward BEFORE UPDATE OR DELETE ON trail_clock
    FOR EACH ROW EXECUTE FUNCTION check_trail_clock();
CREATE TRIGGER trail_clock_append_only BEFORE TRUNCATE ON trail_clock
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE audit_trail (
    seq bigint PRIMARY KEY,
    at timestamptz NOT NULL,
    actor entity_name NOT NULL,
    action text NOT NULL CHECK (action IN
        ('snapshot_loaded', 'targets_published', 'unavailability_recorded', 'unavailability_cleared')),
    subject text COLLATE "C",
    detail jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(detail) = 'object')
);
COMMENT ON TABLE audit_trail IS 'every change, in the order it became visible; rows are only ever added';
COMMENT ON COLUMN audit_trail.seq IS '1, 2, 3, ... without holes; given by the trigger, whatever is asked for';
COMMENT ON COLUMN audit_trail.at IS 'when; never before the entry above it, even if the machine''s clock jumps back';
COMMENT ON COLUMN audit_trail.actor IS 'who';
COMMENT ON COLUMN audit_trail.action IS 'what was done';
COMMENT ON COLUMN audit_trail.subject IS 'to what: a region, version or event, by name';
COMMENT ON COLUMN audit_trail.detail IS 'the rest, by action';
CREATE INDEX audit_trail_by_subject ON audit_trail (subject, seq);

CREATE FUNCTION number_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE trail_clock SET seq = seq + 1, at = greatest(at, clock_timestamp())
        RETURNING seq, at INTO NEW.seq, NEW.at;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_trail_number BEFORE INSERT ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION number_entry();
CREATE FUNCTION ring_doorbell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('audit_trail', '');
    RETURN NULL;
END $$;
CREATE TRIGGER audit_trail_doorbell AFTER INSERT ON audit_trail
    FOR EACH STATEMENT EXECUTE FUNCTION ring_doorbell();
CREATE TRIGGER audit_trail_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_trail
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
