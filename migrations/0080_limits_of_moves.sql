-- The limits of the mover that acts, for solver and planner.
ALTER TABLE mover ADD COLUMN limits jsonb;
COMMENT ON COLUMN mover.limits IS 'limits of moves at once and per window of the mover that acts, as its settings have them; null: none has acted';
