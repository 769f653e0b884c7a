-- When a move began, whatever became of it: a limit of moves within a window counts those that were superseded, failed or
-- expired as well, and does not depend on what the mover that let them begin remembers.
ALTER TABLE moves ADD COLUMN begun_at timestamptz;
COMMENT ON COLUMN moves.begun_at IS 'when it first left pending for a step or for its binding; null: it never did';
UPDATE moves SET begun_at = state_at
    WHERE state IN ('preempting', 'cleaning_up', 'reconfiguring', 'bound');

CREATE FUNCTION note_begin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.begun_at := coalesce(OLD.begun_at, clock_timestamp());
    RETURN NEW;
END $$;
COMMENT ON FUNCTION note_begin IS 'notes when a move began';
CREATE TRIGGER moves_begin BEFORE UPDATE OF state ON moves FOR EACH ROW
    WHEN (OLD.begun_at IS NULL AND NEW.state IN ('preempting', 'cleaning_up', 'reconfiguring', 'bound'))
    EXECUTE FUNCTION note_begin();

-- What ended of late and had begun.
CREATE INDEX moves_begun_by_end ON moves (state_at) WHERE NOT open AND begun_at IS NOT NULL;
