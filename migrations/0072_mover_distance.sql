-- How far Postgres is from the mover that acts, for those who look at it from elsewhere.
ALTER TABLE mover ADD COLUMN round_trip_ms bigint CHECK (round_trip_ms >= 0);
ALTER TABLE mover ADD COLUMN pass_ms bigint CHECK (pass_ms >= 0);
ALTER TABLE mover ADD COLUMN lease_ms bigint CHECK (lease_ms >= 0);
COMMENT ON COLUMN mover.round_trip_ms IS 'how long the fastest of its last renewals of the lease took, in milliseconds; null: not known yet';
COMMENT ON COLUMN mover.pass_ms IS 'how long its last look at everything took, in milliseconds; null: not known yet';
COMMENT ON COLUMN mover.lease_ms IS 'the lease it asks for, in milliseconds';
