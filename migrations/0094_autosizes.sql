-- Reservations whose request follows demand: what their owners set, and what was decided last.

CREATE TABLE autosizes (
    reservation_id integer PRIMARY KEY REFERENCES reservations ON DELETE CASCADE,
    metric text NOT NULL CHECK (metric IN ('used_rru')),
    quantile_micro integer NOT NULL CHECK (quantile_micro BETWEEN 500000 AND 999900),
    min_micro bigint NOT NULL CHECK (min_micro >= 0),
    max_micro bigint NOT NULL CHECK (max_micro BETWEEN min_micro AND 1000000000000000),
    cooldown_seconds integer NOT NULL CHECK (cooldown_seconds BETWEEN 3600 AND 2678400),
    set_by entity_name NOT NULL,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    looked_at timestamptz,
    action text CHECK (action IN ('keep', 'grow', 'shrink')),
    to_micro bigint CHECK (to_micro >= 0),
    reason text,
    request_id uuid REFERENCES capacity_requests,
    CONSTRAINT autosizes_decided CHECK ((action IS NULL) = (reason IS NULL))
);
COMMENT ON TABLE autosizes IS 'reservations whose request follows demand; one goes with its reservation';
COMMENT ON COLUMN autosizes.reservation_id IS 'the reservation';
COMMENT ON COLUMN autosizes.metric IS 'the demand: used_rru, RRU of its servers with running containers';
COMMENT ON COLUMN autosizes.quantile_micro IS 'millionths of the hours whose peak of demand the request must cover';
COMMENT ON COLUMN autosizes.min_micro IS 'the request never falls below it, in micro-RRU';
COMMENT ON COLUMN autosizes.max_micro IS 'the request never rises above it, in micro-RRU';
COMMENT ON COLUMN autosizes.cooldown_seconds IS 'time after a change before the request may shrink';
COMMENT ON COLUMN autosizes.set_by IS 'who set it';
COMMENT ON COLUMN autosizes.set_at IS 'when';
COMMENT ON COLUMN autosizes.looked_at IS 'when the last decision was begun; no other begins within minutes';
COMMENT ON COLUMN autosizes.action IS 'the last decision';
COMMENT ON COLUMN autosizes.to_micro IS 'the size decided, in micro-RRU; null: it stays';
COMMENT ON COLUMN autosizes.reason IS 'why';
COMMENT ON COLUMN autosizes.request_id IS 'the last request that was submitted for it';
SELECT add_words('audit_trail', 'audit_trail_action_check', ARRAY['autosize_set', 'autosize_removed']);
