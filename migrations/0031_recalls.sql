-- Work that is recalled because an MSB is lost: one row for each server that is asked to come back. Its
-- window is over for it then, and it has an event of its own until it is back.

CREATE TABLE recalls (
    recall_id uuid PRIMARY KEY,
    window_id uuid REFERENCES maintenance,
    event_id entity_name NOT NULL UNIQUE,
    server_id integer REFERENCES servers ON DELETE SET NULL,
    server text COLLATE "C" NOT NULL,
    place integer NOT NULL CHECK (place >= 1),
    ordered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at timestamptz NOT NULL,
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    said text,
    open boolean NOT NULL GENERATED ALWAYS AS (state IN ('ordered', 'under_way')) STORED
);
COMMENT ON TABLE recalls IS 'servers in planned maintenance that are recalled because an MSB is lost, and what became of it';
COMMENT ON COLUMN recalls.recall_id IS 'its id, ordered by time; the key by which a host knows that it was asked before';
COMMENT ON COLUMN recalls.window_id IS 'the window it is recalled from; null: maintenance that was recorded as an event';
COMMENT ON COLUMN recalls.event_id IS 'the event that has this server out of use until it is back';
COMMENT ON COLUMN recalls.server_id IS 'the server; null when it is gone';
COMMENT ON COLUMN recalls.server IS 'the server, by name';
COMMENT ON COLUMN recalls.place IS 'its place in the order: 1 is recalled first, because it restores most';
COMMENT ON COLUMN recalls.ordered_at IS 'when it was decided';
COMMENT ON COLUMN recalls.due_at IS 'when it is to be back, by the recall_minutes of its work';
COMMENT ON COLUMN recalls.state IS 'see transitions';
COMMENT ON COLUMN recalls.state_at IS 'since when it is in this state';
COMMENT ON COLUMN recalls.said IS 'why its host refused, for people';
COMMENT ON COLUMN recalls.open IS 'whether its host is asked';
CREATE INDEX recalls_open ON recalls (place, server) WHERE open;
CREATE INDEX recalls_by_window ON recalls (window_id) WHERE window_id IS NOT NULL;
CREATE INDEX recalls_by_server ON recalls (server_id) WHERE server_id IS NOT NULL;
INSERT INTO transitions VALUES
    ('recalls', 'new', 'ordered'),
    ('recalls', 'ordered', 'under_way'),
    ('recalls', 'ordered', 'returned'),
    ('recalls', 'ordered', 'refused'),
    -- Its window ended or was cancelled first.
    ('recalls', 'ordered', 'over'),
    ('recalls', 'under_way', 'returned'),
    ('recalls', 'under_way', 'refused'),
    ('recalls', 'under_way', 'over'),
    ('maintenance', 'active', 'recalling'),
    ('maintenance', 'recalling', 'done'),
    ('maintenance', 'recalling', 'cancelled');
CREATE TRIGGER recalls_transition_insert BEFORE INSERT ON recalls
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER recalls_transition_update BEFORE UPDATE OF state ON recalls
    FOR EACH ROW EXECUTE FUNCTION check_transition();

ALTER TABLE maintenance DROP CONSTRAINT maintenance_reason_check;
ALTER TABLE maintenance ADD CONSTRAINT maintenance_reason_check CHECK (reason IN
    ('asked', 'outage', 'share', 'guarantee', 'missed', 'gone', 'ended_early', 'recalled'));
