-- An operator may accept that reservations fall below their promise during a window, with a reason.

ALTER TABLE maintenance
    ADD COLUMN accepted_short text[] NOT NULL DEFAULT '{}',
    ADD COLUMN accepted_why text,
    ADD CONSTRAINT maintenance_accepted_why CHECK ((cardinality(accepted_short) = 0) = (accepted_why IS NULL));
COMMENT ON COLUMN maintenance.accepted_short IS 'reservations that may fall below their promise while it is under way';
COMMENT ON COLUMN maintenance.accepted_why IS 'why that is accepted; null: it is not';
