-- Planned maintenance: servers and racks that will be out of use for a while, with a time before in which
-- nothing new is put on them. One row is one window of one server or rack; what is asked for an MSB is
-- carried out rack by rack, in windows of one plan that follow one another.

CREATE TABLE maintenance (
    window_id uuid PRIMARY KEY,
    plan_id uuid NOT NULL,
    asked_for text NOT NULL CHECK (asked_for IN ('server', 'rack', 'msb')),
    server_id integer REFERENCES servers ON DELETE SET NULL,
    rack_id integer REFERENCES racks,
    scope text NOT NULL CHECK (scope IN ('server', 'rack')),
    scope_id text COLLATE "C" NOT NULL,
    msb text COLLATE "C" NOT NULL,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    drain_seconds integer NOT NULL CHECK (drain_seconds >= 0),
    share_micro integer NOT NULL CHECK (share_micro BETWEEN 1 AND 1000000),
    why text NOT NULL,
    requested_by text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason text CHECK (reason IN
        ('asked', 'outage', 'share', 'guarantee', 'missed', 'gone', 'ended_early')),
    detail text,
    drained_at timestamptz,
    open boolean NOT NULL GENERATED ALWAYS AS (state NOT IN ('done', 'cancelled')) STORED,
    CONSTRAINT maintenance_scope CHECK (CASE scope
        WHEN 'server' THEN rack_id IS NULL ELSE server_id IS NULL AND rack_id IS NOT NULL END),
    CONSTRAINT maintenance_times CHECK (ends_at > starts_at),
    CONSTRAINT maintenance_reason CHECK (CASE
        WHEN state IN ('paused', 'cancelled') THEN reason IS NOT NULL
        WHEN state = 'done' THEN reason IS NULL OR reason = 'ended_early'
        ELSE reason IS NULL END)
);
COMMENT ON TABLE maintenance IS 'windows of planned maintenance, ended ones included';
COMMENT ON COLUMN maintenance.window_id IS 'its id, ordered by time';
COMMENT ON COLUMN maintenance.plan_id IS 'what windows that were asked for together share; of one alone, its own id';
COMMENT ON COLUMN maintenance.asked_for IS 'what the plan is for: server, rack or msb';
COMMENT ON COLUMN maintenance.server_id IS 'the server it covers; null when it is gone';
COMMENT ON COLUMN maintenance.rack_id IS 'or the rack';
COMMENT ON COLUMN maintenance.scope IS 'which of the two';
COMMENT ON COLUMN maintenance.scope_id IS 'the server or rack, by name';
COMMENT ON COLUMN maintenance.msb IS 'its MSB when it was planned, by name';
COMMENT ON COLUMN maintenance.starts_at IS 'when work begins, and so the deadline of the drain';
COMMENT ON COLUMN maintenance.ends_at IS 'when it ends';
COMMENT ON COLUMN maintenance.drain_seconds IS 'for how long before nothing new is put there';
COMMENT ON COLUMN maintenance.share_micro IS 'millionths of its MSB that may be under maintenance at once while it is';
COMMENT ON COLUMN maintenance.why IS 'why, for people';
COMMENT ON COLUMN maintenance.requested_by IS 'who asked for it';
COMMENT ON COLUMN maintenance.requested_at IS 'when';
COMMENT ON COLUMN maintenance.state IS 'see transitions';
COMMENT ON COLUMN maintenance.state_at IS 'since when it is in this state';
COMMENT ON COLUMN maintenance.reason IS 'why it is paused, was cancelled or ended before its time';
COMMENT ON COLUMN maintenance.detail IS 'the numbers behind the reason, for people';
COMMENT ON COLUMN maintenance.drained_at IS 'when moves were opened that end the containers left; null: not yet';
COMMENT ON COLUMN maintenance.open IS 'whether it is still to come or under way';
CREATE INDEX maintenance_open ON maintenance (starts_at, window_id) WHERE open;
CREATE INDEX maintenance_by_plan ON maintenance (plan_id);
CREATE INDEX maintenance_by_server ON maintenance (server_id) WHERE server_id IS NOT NULL;
INSERT INTO transitions VALUES
    ('maintenance', 'new', 'planned'),
    ('maintenance', 'planned', 'draining'),
    ('maintenance', 'planned', 'paused'),
    ('maintenance', 'planned', 'cancelled'),
    ('maintenance', 'draining', 'active'),
    ('maintenance', 'draining', 'paused'),
    ('maintenance', 'draining', 'cancelled'),
    -- What held it back is over.
    ('maintenance', 'paused', 'planned'),
    ('maintenance', 'paused', 'cancelled'),
    ('maintenance', 'active', 'done'),
    ('maintenance', 'active', 'cancelled');
CREATE TRIGGER maintenance_transition_insert BEFORE INSERT ON maintenance
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER maintenance_transition_update BEFORE UPDATE OF state ON maintenance
    FOR EACH ROW EXECUTE FUNCTION check_transition();

CREATE VIEW cordoned_servers AS
    WITH cordons AS (SELECT * FROM maintenance WHERE open AND state IN ('draining', 'active'))
    SELECT c.server_id, c.window_id, c.state, c.starts_at AS drain_by, c.ends_at
        FROM cordons c WHERE c.server_id IS NOT NULL
    UNION ALL SELECT s.server_id, c.window_id, c.state, c.starts_at, c.ends_at
        FROM cordons c JOIN servers s ON s.rack_id = c.rack_id;
COMMENT ON VIEW cordoned_servers IS 'every server on which nothing new is put because of maintenance; a server stands here once for each window';
COMMENT ON COLUMN cordoned_servers.server_id IS 'the server';
COMMENT ON COLUMN cordoned_servers.window_id IS 'the window';
COMMENT ON COLUMN cordoned_servers.state IS 'draining, or active: work is done on it';
COMMENT ON COLUMN cordoned_servers.drain_by IS 'when containers that still run are ended';
COMMENT ON COLUMN cordoned_servers.ends_at IS 'when it is back';

ALTER TABLE moves DROP CONSTRAINT moves_reason_check;
ALTER TABLE moves ADD CONSTRAINT moves_reason_check CHECK (reason IN
    ('newer_target', 'snapshot_loaded', 'server_removed', 'host_refused', 'took_too_long',
     'maintenance_over'));
