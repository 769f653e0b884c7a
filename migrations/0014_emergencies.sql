-- Capacity that somebody needs at once. It is asked for here and granted by the mover that acts, from
-- what nobody owns and from shared buffers; no solve is waited for. What is granted is promised from
-- then on, so that the next solve keeps it, spreads it and gives it its buffer.

CREATE TABLE emergencies (
    emergency_id uuid PRIMARY KEY,
    reservation text COLLATE "C" NOT NULL,
    asked_micro bigint NOT NULL CHECK (asked_micro BETWEEN 1 AND 1000000000000000),
    why text NOT NULL CHECK (why <> ''),
    asked_by entity_name NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    granted_micro bigint CHECK (granted_micro BETWEEN 0 AND 1000000000000000),
    granted_at timestamptz,
    servers integer CHECK (servers >= 0),
    from_shared integer CHECK (from_shared BETWEEN 0 AND servers),
    refusal text CHECK (refusal IN ('no_such_reservation', 'not_guaranteed', 'nothing_fits')),
    CONSTRAINT emergencies_granted CHECK ((state IN ('granted', 'ended')) = (granted_at IS NOT NULL)
        AND (granted_at IS NULL) = (granted_micro IS NULL) AND (granted_at IS NULL) = (servers IS NULL)
        AND (granted_at IS NULL) = (from_shared IS NULL)),
    CONSTRAINT emergencies_refused CHECK ((state = 'refused') = (refusal IS NOT NULL))
);
COMMENT ON TABLE emergencies IS 'capacity that somebody asked for at once, and what became of it';
COMMENT ON COLUMN emergencies.emergency_id IS 'its id, ordered by time';
COMMENT ON COLUMN emergencies.reservation IS 'who needs it';
COMMENT ON COLUMN emergencies.asked_micro IS 'how much more than it has, in micro-RRU';
COMMENT ON COLUMN emergencies.why IS 'why, for those who wonder';
COMMENT ON COLUMN emergencies.asked_by IS 'who asked';
COMMENT ON COLUMN emergencies.asked_at IS 'when';
COMMENT ON COLUMN emergencies.state IS 'see transitions';
COMMENT ON COLUMN emergencies.state_at IS 'since when it is in this state';
COMMENT ON COLUMN emergencies.granted_micro IS 'how much was granted, in micro-RRU: less than asked where no more fits';
COMMENT ON COLUMN emergencies.granted_at IS 'when; until a solve that began later is published it is a debt: neither spread nor buffered';
COMMENT ON COLUMN emergencies.servers IS 'how many servers that is';
COMMENT ON COLUMN emergencies.from_shared IS 'how many of them shared buffers gave';
COMMENT ON COLUMN emergencies.refusal IS 'why nothing was granted';
CREATE INDEX emergencies_asked ON emergencies (asked_at) WHERE state = 'asked';
INSERT INTO transitions VALUES
    ('emergencies', 'new', 'asked'),
    ('emergencies', 'asked', 'granted'),
    ('emergencies', 'asked', 'refused'),
    ('emergencies', 'asked', 'cancelled'),
    ('emergencies', 'granted', 'ended');
CREATE TRIGGER emergencies_transition_insert BEFORE INSERT ON emergencies
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER emergencies_transition_update BEFORE UPDATE OF state ON emergencies
    FOR EACH ROW EXECUTE FUNCTION check_transition();
