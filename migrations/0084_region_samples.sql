-- The figures of the region over time, for charts. A server writes a sample every five minutes; a few hundred rows
-- a day, deleted at the age at which solves are.

CREATE TABLE region_samples (
    at timestamptz PRIMARY KEY,
    in_use integer NOT NULL CHECK (in_use >= 0),
    idle integer NOT NULL CHECK (idle >= 0),
    shared_buffer integer NOT NULL CHECK (shared_buffer >= 0),
    free integer NOT NULL CHECK (free >= 0),
    unavailable integer NOT NULL CHECK (unavailable >= 0),
    promised_micro bigint NOT NULL CHECK (promised_micro >= 0),
    held_micro bigint NOT NULL CHECK (held_micro >= 0),
    guaranteed_micro bigint NOT NULL CHECK (guaranteed_micro >= 0)
);
COMMENT ON TABLE region_samples IS 'servers by use and promises of the region, every five minutes';
COMMENT ON COLUMN region_samples.at IS 'the beginning of the five minutes in which it was taken';
COMMENT ON COLUMN region_samples.in_use IS 'servers of reservations with running containers';
COMMENT ON COLUMN region_samples.idle IS 'servers of reservations without containers';
COMMENT ON COLUMN region_samples.shared_buffer IS 'servers of shared buffers';
COMMENT ON COLUMN region_samples.free IS 'servers of no reservation';
COMMENT ON COLUMN region_samples.unavailable IS 'servers out of service, of a reservation or not';
COMMENT ON COLUMN region_samples.promised_micro IS 'promised capacity of all guaranteed reservations, in micro-RRU';
COMMENT ON COLUMN region_samples.held_micro IS 'what they held of it, in micro-RRU';
COMMENT ON COLUMN region_samples.guaranteed_micro IS 'what they would have had after the loss of one more MSB, for each its worst, in micro-RRU';
