-- Fault domains that cross MSBs, such as switches and power feeds: which servers are in which, and the reservations that
-- survive the loss of any one.

CREATE TABLE partitions (
    partition_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partition entity_name NOT NULL UNIQUE CHECK (partition <> 'msb')
);
COMMENT ON TABLE partitions IS 'partitions of servers into fault domains, one of which may be lost at a time';
COMMENT ON COLUMN partitions.partition_id IS 'its number';
COMMENT ON COLUMN partitions.partition IS 'its name, such as switch';

CREATE TABLE server_domains (
    server_id integer NOT NULL REFERENCES servers ON DELETE CASCADE,
    partition_id integer NOT NULL REFERENCES partitions,
    domain entity_name NOT NULL,
    PRIMARY KEY (server_id, partition_id)
);
COMMENT ON TABLE server_domains IS 'the fault domains of servers; a server without a row is lost with no domain of the partition';
COMMENT ON COLUMN server_domains.server_id IS 'the server';
COMMENT ON COLUMN server_domains.partition_id IS 'the partition';
COMMENT ON COLUMN server_domains.domain IS 'its domain of that partition';

CREATE TABLE survives (
    promise_id bigint NOT NULL REFERENCES promises,
    partition_id integer NOT NULL REFERENCES partitions,
    PRIMARY KEY (promise_id, partition_id)
);
COMMENT ON TABLE survives IS 'partitions of which a reservation survives the loss of any one domain, besides that of an MSB';
COMMENT ON COLUMN survives.promise_id IS 'the version of the promise it belongs to';
COMMENT ON COLUMN survives.partition_id IS 'the partition';

CREATE TRIGGER survives_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON survives
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A solve that is under way does not know new domains, so its targets skip such a server.
ALTER TABLE servers ADD COLUMN domain_changes integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN servers.domain_changes IS 'how often its fault domains have changed';
DROP TRIGGER servers_generation ON servers;
CREATE TRIGGER servers_generation BEFORE UPDATE ON servers FOR EACH ROW
    WHEN (OLD.current_reservation_id IS DISTINCT FROM NEW.current_reservation_id
        OR OLD.rack_id <> NEW.rack_id OR OLD.hardware_type_id <> NEW.hardware_type_id
        OR OLD.domain_changes <> NEW.domain_changes
        OR OLD.target_origin IS DISTINCT FROM NEW.target_origin
        OR NEW.target_origin IS NOT NULL
            AND OLD.target_reservation_id IS DISTINCT FROM NEW.target_reservation_id
        OR OLD.generation <> NEW.generation)
    EXECUTE FUNCTION count_generation();
COMMENT ON COLUMN servers.generation IS 'counts what a decision rests on: changes of owner, rack, type and fault domains, and decisions between two solves';

-- The domains of a server in order: partition, domain, partition, domain and so on. `among`: of these partitions only; null:
-- of all.
CREATE FUNCTION domains_of(of_server integer, among text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(w.word ORDER BY p.partition, w.place), '{}')
    FROM server_domains d JOIN partitions p USING (partition_id)
    CROSS JOIN LATERAL (VALUES (1, p.partition::text), (2, d.domain::text)) AS w (place, word)
    WHERE d.server_id = of_server AND (among IS NULL OR p.partition = ANY (among))
$$;
