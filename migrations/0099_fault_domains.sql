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

-- The domains of a server in order: partition, domain, partition, domain and so on. `among`: of these partitions only; null:
-- of all.
CREATE FUNCTION domains_of(of_server integer, among text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(w.word ORDER BY p.partition, w.place), '{}')
    FROM server_domains d JOIN partitions p USING (partition_id)
    CROSS JOIN LATERAL (VALUES (1, p.partition::text), (2, d.domain::text)) AS w (place, word)
    WHERE d.server_id = of_server AND (among IS NULL OR p.partition = ANY (among))
$$;
