-- Shared buffers that follow failures: what operators set for each hardware type, and what was decided last.

CREATE TABLE buffer_autosizes (
    hardware_type_id integer PRIMARY KEY REFERENCES hardware_types,
    chance_micro integer NOT NULL CHECK (chance_micro BETWEEN 100 AND 500000),
    min_servers integer NOT NULL CHECK (min_servers >= 0),
    max_servers integer NOT NULL CHECK (max_servers BETWEEN min_servers AND 1000000),
    cooldown_seconds integer NOT NULL CHECK (cooldown_seconds BETWEEN 3600 AND 2678400),
    set_by entity_name NOT NULL,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    looked_at timestamptz,
    action text CHECK (action IN ('keep', 'grow', 'shrink')),
    to_servers integer CHECK (to_servers >= 0),
    reason text,
    CONSTRAINT buffer_autosizes_decided CHECK ((action IS NULL) = (reason IS NULL))
);
COMMENT ON TABLE buffer_autosizes IS 'hardware types whose shared buffer follows their failures';
COMMENT ON COLUMN buffer_autosizes.hardware_type_id IS 'the hardware type';
COMMENT ON COLUMN buffer_autosizes.chance_micro IS 'accepted chance that more servers are down at an instant than the buffer has, in millionths';
COMMENT ON COLUMN buffer_autosizes.min_servers IS 'the buffer never falls below it';
COMMENT ON COLUMN buffer_autosizes.max_servers IS 'the buffer never rises above it';
COMMENT ON COLUMN buffer_autosizes.cooldown_seconds IS 'time after a change before the buffer may shrink';
COMMENT ON COLUMN buffer_autosizes.set_by IS 'who set it';
COMMENT ON COLUMN buffer_autosizes.set_at IS 'when';
COMMENT ON COLUMN buffer_autosizes.looked_at IS 'when the last decision was begun; no other begins within minutes';
COMMENT ON COLUMN buffer_autosizes.action IS 'the last decision';
COMMENT ON COLUMN buffer_autosizes.to_servers IS 'the size decided, in servers; null: it stays';
COMMENT ON COLUMN buffer_autosizes.reason IS 'why';
SELECT add_words('audit_trail', 'audit_trail_action_check', ARRAY['buffer_autosize_set', 'buffer_autosize_removed']);
