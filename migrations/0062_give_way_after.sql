-- The setting of the mover that acts, for pages and callers that run elsewhere.
ALTER TABLE mover ADD COLUMN give_way_after_seconds bigint CHECK (give_way_after_seconds >= 0);
COMMENT ON COLUMN mover.give_way_after_seconds IS 'how long at least two MSBs are lost before the mover that acts lets reservations give way by itself; null: an operator does';
