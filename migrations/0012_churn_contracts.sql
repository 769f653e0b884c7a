-- What a reservation agreed to be disturbed: how many of its servers in use a solve may take from it
-- within a window, and at which times of the day none.

CREATE TABLE churn_contracts (
    reservation_id integer PRIMARY KEY REFERENCES reservations ON DELETE CASCADE,
    in_use_micro integer NOT NULL CHECK (in_use_micro BETWEEN 0 AND 1000000),
    -- From a minute to a month.
    window_seconds integer NOT NULL CHECK (window_seconds BETWEEN 60 AND 2678400),
    zone text NOT NULL,
    set_by text NOT NULL,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE churn_contracts IS 'churn contracts of reservations, enforced by the mover; one goes with its reservation';
COMMENT ON COLUMN churn_contracts.reservation_id IS 'the reservation';
COMMENT ON COLUMN churn_contracts.in_use_micro IS 'millionths of its servers in use that may leave it within the window; above 0, one server may in any case';
COMMENT ON COLUMN churn_contracts.window_seconds IS 'the window, which slides';
COMMENT ON COLUMN churn_contracts.zone IS 'the time zone of its quiet times, by a name Postgres knows';
COMMENT ON COLUMN churn_contracts.set_by IS 'who set it';
COMMENT ON COLUMN churn_contracts.set_at IS 'when';

CREATE TABLE quiet_times (
    reservation_id integer NOT NULL REFERENCES churn_contracts ON DELETE CASCADE,
    from_minute integer NOT NULL CHECK (from_minute BETWEEN 0 AND 1439),
    until_minute integer NOT NULL CHECK (until_minute BETWEEN 1 AND 1440),
    PRIMARY KEY (reservation_id, from_minute, until_minute),
    CONSTRAINT quiet_times_length CHECK (from_minute <> until_minute)
);
COMMENT ON TABLE quiet_times IS 'times of the day at which no server in use begins to leave a reservation';
COMMENT ON COLUMN quiet_times.reservation_id IS 'the reservation';
COMMENT ON COLUMN quiet_times.from_minute IS 'from this minute of the day on, in the zone of the contract';
COMMENT ON COLUMN quiet_times.until_minute IS 'up to, not including, this one; before from_minute: of the next day';

-- The database says what time it is somewhere. A zone that it no longer knows, after a restore
-- elsewhere, has no time of day; whoever asks treats that as quiet.
CREATE FUNCTION minute_of_day(at timestamptz, zone text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN extract(hour FROM at AT TIME ZONE zone)::integer * 60
        + extract(minute FROM at AT TIME ZONE zone)::integer;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN NULL;
END $$;
CREATE FUNCTION is_quiet(at timestamptz, zone text, from_minute integer, until_minute integer)
    RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(CASE WHEN from_minute < until_minute
            THEN m.minute >= from_minute AND m.minute < until_minute
            ELSE m.minute >= from_minute OR m.minute < until_minute END, true)
    FROM (SELECT minute_of_day(at, zone) AS minute) m
$$;

-- What left a reservation of late is counted for every look of the mover at what waits.
CREATE INDEX moves_left_of_late ON moves (source_reservation, state_at) WHERE state = 'bound' AND in_use;
