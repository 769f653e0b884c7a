-- Servers that are drained because they are to be decommissioned.

CREATE TABLE decommissions (
    server_id integer PRIMARY KEY REFERENCES servers ON DELETE CASCADE,
    event_id entity_name NOT NULL UNIQUE,
    asked_by text COLLATE "C" NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    refused text,
    tried_at timestamptz
);
COMMENT ON TABLE decommissions IS 'servers that are drained, and removed once they are free';
COMMENT ON COLUMN decommissions.server_id IS 'the server';
COMMENT ON COLUMN decommissions.event_id IS 'the event that takes it out of use meanwhile, so that nothing is given, lent or put there';
COMMENT ON COLUMN decommissions.asked_by IS 'who asked for it';
COMMENT ON COLUMN decommissions.asked_at IS 'when';
COMMENT ON COLUMN decommissions.refused IS 'why it could not be removed although it is free, for people; null: it was not tried or it could';
COMMENT ON COLUMN decommissions.tried_at IS 'when it was last tried to remove it';

CREATE OR REPLACE FUNCTION pg_temp.add_words(relation regclass, listed text, further text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    held text := (SELECT pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid = relation AND conname = listed);
    words text[] := ARRAY(SELECT m[1] FROM regexp_matches(held, '''([^'']+)''::text', 'g') AS m);
BEGIN
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', relation, listed);
    EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%s IN (%s))', relation, listed,
        substring(held FROM '\((\w+) = ANY'),
        (SELECT string_agg(quote_literal(word), ', ' ORDER BY nr)
            FROM unnest(words || further) WITH ORDINALITY AS w (word, nr)));
END $$;
SELECT pg_temp.add_words('servers', 'servers_target_origin_check', ARRAY['decommission']);
SELECT pg_temp.add_words('moves', 'moves_origin_check', ARRAY['decommission']);
SELECT pg_temp.add_words('audit_trail', 'audit_trail_action_check',
    ARRAY['decommission_asked', 'decommission_cancelled', 'hardware_type_renamed', 'hardware_type_removed']);

-- A server that is drained for good waits for no repair.
CREATE OR REPLACE FUNCTION servers_under_repair() RETURNS SETOF integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1000 AS $$
BEGIN
    RETURN QUERY SELECT DISTINCT u.server_id FROM unavailable_servers u
        WHERE u.kind <> 'planned_maintenance' AND u.event_id NOT LIKE 'unfinished/%'
            AND u.event_id NOT LIKE 'decommission/%';
END $$;
COMMENT ON FUNCTION servers_under_repair IS 'every server that an event covers now, planned maintenance, moves that were left half-way and servers that are drained for good apart';
COMMENT ON COLUMN moves.origin IS 'why it was opened: targets: a version of the targets; plan: a request was granted; replacement: a server failed; emergency: somebody asked; give_way: of what an outage left, others need it more; restore: a move was superseded half-way by the owner the server has, whose host profile it may have lost; recall: what was lent comes back; drain: maintenance is due; reconfigure: its owner wants another host profile; decommission: it is to be removed';
