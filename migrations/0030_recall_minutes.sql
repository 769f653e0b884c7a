-- Planned work says how long it takes to give its servers back when it is recalled because an MSB is
-- lost. What does not say so cannot be recalled, and counts as gone.

ALTER TABLE maintenance ADD COLUMN recall_minutes integer CHECK (recall_minutes BETWEEN 0 AND 10080);
COMMENT ON COLUMN maintenance.recall_minutes IS 'how many minutes work takes to give its servers back when it is recalled; null: it cannot be recalled';
ALTER TABLE unavailability ADD COLUMN recall_minutes integer CHECK (recall_minutes >= 0);
COMMENT ON COLUMN unavailability.recall_minutes IS 'of planned maintenance: how many minutes it takes to give its servers back when it is recalled; null: it cannot be recalled';
