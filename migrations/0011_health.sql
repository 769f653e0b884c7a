-- Health reports come by the thousand a second, each with its entry of the audit trail, and readers
-- ask again and again what covers a few servers.

-- Numbers by statement. The clock was moved once for each entry, and each time Postgres walked past
-- every version of its row that the transaction had left: 1,000 entries took 50 ms, 10,000 took
-- seconds. Now the clock is locked once, entries count on from it in memory, and it is moved to the
-- last of them at the end of the statement. The order of numbers and of commits is as before: the
-- clock stays locked until the transaction ends.
DROP TRIGGER audit_trail_number ON audit_trail;
DROP FUNCTION number_entry();

CREATE FUNCTION begin_entries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    clock trail_clock;
BEGIN
    SELECT * INTO STRICT clock FROM trail_clock FOR UPDATE;
    PERFORM set_config('ras.trail_seq', clock.seq::text, true),
        set_config('ras.trail_at', to_char(greatest(clock.at, clock_timestamp()) AT TIME ZONE 'UTC',
            'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), true);
    RETURN NULL;
END $$;
CREATE TRIGGER audit_trail_begin BEFORE INSERT ON audit_trail
    FOR EACH STATEMENT EXECUTE FUNCTION begin_entries();

CREATE FUNCTION number_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.seq := current_setting('ras.trail_seq')::bigint + 1;
    NEW.at := current_setting('ras.trail_at')::timestamptz;
    PERFORM set_config('ras.trail_seq', NEW.seq::text, true);
    RETURN NEW;
END $$;
CREATE TRIGGER audit_trail_number BEFORE INSERT ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION number_entry();

CREATE FUNCTION end_entries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    entries bigint;
    first bigint;
    last bigint;
    clock trail_clock;
BEGIN
    SELECT count(*), min(seq), max(seq) INTO entries, first, last FROM added;
    IF entries = 0 THEN
        RETURN NULL;
    END IF;
    SELECT * INTO STRICT clock FROM trail_clock;
    -- What numbers were given is not believed, but looked at.
    IF first <> clock.seq + 1 OR last <> clock.seq + entries THEN
        RAISE EXCEPTION 'entries % to % do not follow on entry %', first, last, clock.seq
            USING ERRCODE = 'check_violation', CONSTRAINT = 'audit_trail_numbered';
    END IF;
    UPDATE trail_clock SET seq = last, at = (SELECT max(added.at) FROM added);
    RETURN NULL;
END $$;
CREATE TRIGGER audit_trail_end AFTER INSERT ON audit_trail
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION end_entries();

CREATE OR REPLACE FUNCTION check_trail_clock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.at < OLD.at OR NEW.seq <= OLD.seq
        OR NEW.seq <> (SELECT max(seq) FROM audit_trail)
    THEN
        RAISE EXCEPTION 'the clock of the audit trail only goes forward, to the last entry'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'trail_clock_forward';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON COLUMN audit_trail.seq IS '1, 2, 3, ... without holes; given by triggers, whatever is asked for';

-- What covers a server is looked up by its place; of each scope but servers events are few.
CREATE INDEX unavailability_by_rack ON unavailability (rack_id) WHERE rack_id IS NOT NULL;
CREATE INDEX unavailability_by_msb ON unavailability (msb_id) WHERE msb_id IS NOT NULL;
CREATE INDEX unavailability_by_datacenter ON unavailability (datacenter_id) WHERE datacenter_id IS NOT NULL;
-- Events that begin by the clock alone: they were announced, and the trail has no entry then.
CREATE INDEX unavailability_by_start ON unavailability (started_at);
-- The servers of a rack that fails. A server hardly ever changes its rack, so publications do not
-- touch this index.
CREATE INDEX servers_by_rack ON servers (rack_id);
