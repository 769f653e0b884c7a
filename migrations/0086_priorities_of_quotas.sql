-- The most important priority that an owner may ask for. Without a row it is the default of the program.

CREATE TABLE quota_priorities (
    owner text PRIMARY KEY CHECK (char_length(owner) BETWEEN 1 AND 128),
    max_priority integer NOT NULL CHECK (max_priority >= 0),
    set_by entity_name NOT NULL,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE quota_priorities IS 'the most important priority that owners may ask for; no row: the default priority';
COMMENT ON COLUMN quota_priorities.owner IS 'the business unit';
COMMENT ON COLUMN quota_priorities.max_priority IS 'the most important priority it may ask for: 0 is the most important of all';
COMMENT ON COLUMN quota_priorities.set_by IS 'who set it';
COMMENT ON COLUMN quota_priorities.set_at IS 'when';
