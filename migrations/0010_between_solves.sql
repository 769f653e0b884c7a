-- What is decided between two solves: a server that failed is replaced, an emergency is served, an
-- outage makes others give way. Such a decision is a target like those of a solve, with an origin of
-- its own; a solve under way when it was made skips the server, because its generation has moved.

ALTER TABLE servers ADD COLUMN target_origin text
    CHECK (target_origin IN ('replacement', 'emergency', 'give_way'));
ALTER TABLE servers ADD CONSTRAINT servers_orphan_origin CHECK (target_pending OR target_origin IS NULL);
COMMENT ON COLUMN servers.target_origin IS 'who decided the move under way, if not a version of the targets';
COMMENT ON COLUMN servers.generation IS 'counts what a decision rests on: changes of owner, rack and type, and decisions between two solves';

-- Few servers at any time, so that what is urgent is found without a look at every server.
CREATE INDEX servers_between_solves ON servers (server_id) WHERE target_origin IS NOT NULL;

DROP TRIGGER servers_generation ON servers;
CREATE TRIGGER servers_generation BEFORE UPDATE ON servers FOR EACH ROW
    WHEN (OLD.current_reservation_id IS DISTINCT FROM NEW.current_reservation_id
        OR OLD.rack_id <> NEW.rack_id OR OLD.hardware_type_id <> NEW.hardware_type_id
        OR OLD.target_origin IS DISTINCT FROM NEW.target_origin
        OR NEW.target_origin IS NOT NULL
            AND OLD.target_reservation_id IS DISTINCT FROM NEW.target_reservation_id
        OR OLD.generation <> NEW.generation)
    EXECUTE FUNCTION count_generation();

-- Moves that end where they began: a host profile set again, containers ended, a loan taken back.
ALTER TABLE moves DROP CONSTRAINT moves_origin_check;
ALTER TABLE moves ADD CONSTRAINT moves_origin_check CHECK (origin IN
    ('targets', 'replacement', 'emergency', 'give_way', 'restore', 'recall', 'drain'));
ALTER TABLE moves ADD COLUMN stays boolean NOT NULL
    GENERATED ALWAYS AS (origin IN ('restore', 'recall', 'drain')) STORED;
COMMENT ON COLUMN moves.origin IS 'targets: a version of the targets; replacement: a server failed; emergency: somebody asked; give_way: of what an outage left, others need it more; restore: a move was superseded half-way by the owner the server has, whose host profile it may have lost; recall: what was lent comes back; drain: maintenance is due';
COMMENT ON COLUMN moves.stays IS 'whether the server keeps its owner';

-- When we learned of an event, by our own clock: what came after that is our doing.
ALTER TABLE unavailability ADD COLUMN recorded_at timestamptz NOT NULL DEFAULT clock_timestamp();
COMMENT ON COLUMN unavailability.recorded_at IS 'when it was recorded first';
CREATE INDEX unavailability_active ON unavailability ((coalesce(ended_at, 'infinity'::timestamptz)));

-- Scope by scope: one join on any of four columns would look at every server for every event. And event
-- by event (OFFSET 0): a planner that thinks events are many would look at every server for each scope.
CREATE VIEW unavailable_servers AS
    WITH active AS (SELECT * FROM unavailability
        WHERE coalesce(ended_at, 'infinity'::timestamptz) > now() AND started_at <= now())
    SELECT a.server_id, a.event_id, a.scope, a.kind, a.started_at, a.recorded_at
        FROM active a WHERE a.server_id IS NOT NULL
    UNION ALL SELECT s.server_id, a.event_id, a.scope, a.kind, a.started_at, a.recorded_at
        FROM active a CROSS JOIN LATERAL (SELECT server_id FROM servers
            WHERE rack_id = a.rack_id OFFSET 0) s WHERE a.rack_id IS NOT NULL
    UNION ALL SELECT s.server_id, a.event_id, a.scope, a.kind, a.started_at, a.recorded_at
        FROM active a CROSS JOIN LATERAL (SELECT server_id FROM racks JOIN servers USING (rack_id)
            WHERE msb_id = a.msb_id OFFSET 0) s WHERE a.msb_id IS NOT NULL
    UNION ALL SELECT s.server_id, a.event_id, a.scope, a.kind, a.started_at, a.recorded_at
        FROM active a CROSS JOIN LATERAL (SELECT server_id FROM msbs JOIN racks USING (msb_id)
            JOIN servers USING (rack_id) WHERE datacenter_id = a.datacenter_id OFFSET 0) s
        WHERE a.datacenter_id IS NOT NULL;
COMMENT ON VIEW unavailable_servers IS 'every server that an event covers now, planned maintenance included; a server stands here once for each event';
COMMENT ON COLUMN unavailable_servers.server_id IS 'the server';
COMMENT ON COLUMN unavailable_servers.event_id IS 'the event';
COMMENT ON COLUMN unavailable_servers.scope IS 'what the event covers';
COMMENT ON COLUMN unavailable_servers.kind IS 'its kind';
COMMENT ON COLUMN unavailable_servers.started_at IS 'when it began';
COMMENT ON COLUMN unavailable_servers.recorded_at IS 'when we learned of it';

-- One row for each server that failed unplanned while a guaranteed reservation held it.
CREATE TABLE replacements (
    replacement_id uuid PRIMARY KEY,
    server_id integer REFERENCES servers ON DELETE SET NULL,
    server text COLLATE "C" NOT NULL,
    reservation text COLLATE "C" NOT NULL,
    event_id entity_name NOT NULL,
    started_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    spare_id integer REFERENCES servers ON DELETE SET NULL,
    spare text COLLATE "C",
    CONSTRAINT replacements_spare CHECK (state NOT IN ('swapped', 'bound') OR spare IS NOT NULL)
);
COMMENT ON TABLE replacements IS 'servers that failed while a reservation held them, and what became of it; one that is owed is a debt';
COMMENT ON COLUMN replacements.replacement_id IS 'its id, ordered by time';
COMMENT ON COLUMN replacements.server_id IS 'the server that failed; null when it is gone';
COMMENT ON COLUMN replacements.server IS 'the server that failed, by name';
COMMENT ON COLUMN replacements.reservation IS 'who is short of it';
COMMENT ON COLUMN replacements.event_id IS 'the event that took it out of use';
COMMENT ON COLUMN replacements.started_at IS 'when that began, by its own time';
COMMENT ON COLUMN replacements.recorded_at IS 'when we learned of it';
COMMENT ON COLUMN replacements.state IS 'see transitions';
COMMENT ON COLUMN replacements.state_at IS 'since when it is in this state';
COMMENT ON COLUMN replacements.spare_id IS 'the server that takes its place; null when it is gone';
COMMENT ON COLUMN replacements.spare IS 'the server that takes its place, by name';
CREATE UNIQUE INDEX replacements_one_open ON replacements (server_id) WHERE state IN ('owed', 'swapped');
CREATE INDEX replacements_by_spare ON replacements (spare_id) WHERE state = 'swapped';
CREATE INDEX replacements_by_server ON replacements (server_id) WHERE server_id IS NOT NULL;
INSERT INTO transitions VALUES
    ('replacements', 'new', 'owed'),
    ('replacements', 'owed', 'swapped'),
    -- The spare failed as well, or its host refused.
    ('replacements', 'swapped', 'owed'),
    ('replacements', 'swapped', 'bound'),
    ('replacements', 'swapped', 'withdrawn'),
    ('replacements', 'owed', 'recovered'),
    ('replacements', 'owed', 'paid'),
    ('replacements', 'owed', 'withdrawn');
CREATE TRIGGER replacements_transition_insert BEFORE INSERT ON replacements
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER replacements_transition_update BEFORE UPDATE OF state ON replacements
    FOR EACH ROW EXECUTE FUNCTION check_transition();

-- MSBs that are lost: what fails there is not replaced, and what is lent elsewhere comes back.
CREATE TABLE outages (
    outage_id uuid PRIMARY KEY,
    msb_id integer REFERENCES msbs ON DELETE SET NULL,
    msb text COLLATE "C" NOT NULL,
    reason text NOT NULL CHECK (reason IN ('reported', 'storm')),
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz CHECK (ended_at >= began_at),
    servers integer NOT NULL CHECK (servers >= 0),
    lent integer NOT NULL CHECK (lent >= 0)
);
COMMENT ON TABLE outages IS 'MSBs that are or were lost';
COMMENT ON COLUMN outages.outage_id IS 'its id, ordered by time';
COMMENT ON COLUMN outages.msb_id IS 'the MSB; null when it is gone';
COMMENT ON COLUMN outages.msb IS 'the MSB, by name';
COMMENT ON COLUMN outages.reason IS 'reported: an event says so; storm: so much of it failed at once that it was one failure';
COMMENT ON COLUMN outages.began_at IS 'when the mover noticed';
COMMENT ON COLUMN outages.ended_at IS 'when it noticed the end; null: lost now';
COMMENT ON COLUMN outages.servers IS 'servers out of use there when it began';
COMMENT ON COLUMN outages.lent IS 'servers of guaranteed reservations that were lent when it began: three quarters of them come back at once, the others within half an hour';
CREATE UNIQUE INDEX outages_one_open ON outages (msb_id) WHERE ended_at IS NULL;

ALTER TABLE audit_trail DROP CONSTRAINT audit_trail_action_check;
ALTER TABLE audit_trail ADD CONSTRAINT audit_trail_action_check CHECK (action IN
    ('snapshot_loaded', 'targets_published', 'unavailability_recorded', 'unavailability_cleared',
     'moves_opened', 'server_bound', 'move_ended', 'mover_stopped', 'mover_resumed',
     'server_replaced', 'replacement_owed', 'outage_began', 'outage_ended', 'servers_lent',
     'servers_recalled', 'usage_reported', 'maintenance_planned', 'maintenance_changed',
     'contract_set', 'contract_removed', 'emergency_asked', 'emergency_granted', 'emergency_ended',
     'reservations_gave_way'));
