-- Events that take servers out of use. Each covers exactly one thing, and one that is there.

CREATE TABLE unavailability (
    event_id entity_name PRIMARY KEY,
    server_id integer REFERENCES servers ON DELETE CASCADE,
    rack_id integer REFERENCES racks,
    msb_id integer REFERENCES msbs,
    datacenter_id integer REFERENCES datacenters,
    scope text NOT NULL GENERATED ALWAYS AS (CASE
        WHEN server_id IS NOT NULL THEN 'server'
        WHEN rack_id IS NOT NULL THEN 'rack'
        WHEN msb_id IS NOT NULL THEN 'msb'
        ELSE 'datacenter' END) STORED,
    kind text NOT NULL CHECK (kind IN
        ('planned_maintenance', 'random_failure', 'software', 'correlated_failure')),
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    CONSTRAINT unavailability_scope CHECK (num_nonnulls(server_id, rack_id, msb_id, datacenter_id) = 1),
    CONSTRAINT unavailability_times CHECK (ended_at >= started_at)
);
COMMENT ON TABLE unavailability IS 'unavailability events, ended ones included';
COMMENT ON COLUMN unavailability.event_id IS 'its name';
COMMENT ON COLUMN unavailability.server_id IS 'the server it covers';
COMMENT ON COLUMN unavailability.rack_id IS 'or the rack';
COMMENT ON COLUMN unavailability.msb_id IS 'or the MSB';
COMMENT ON COLUMN unavailability.datacenter_id IS 'or the datacenter';
COMMENT ON COLUMN unavailability.scope IS 'which of the four';
COMMENT ON COLUMN unavailability.kind IS 'planned_maintenance, random_failure, software or correlated_failure';
COMMENT ON COLUMN unavailability.started_at IS 'when it began';
COMMENT ON COLUMN unavailability.ended_at IS 'when it ended; null: still active';
CREATE INDEX unavailability_by_server ON unavailability (server_id) WHERE server_id IS NOT NULL;
