-- Where a reservation may have servers at all, and how much of it one MSB may hold: hard rules beside the
-- shares that are wanted.

ALTER TABLE promises
    ADD COLUMN replicas integer CHECK (replicas BETWEEN 1 AND 1000),
    ADD COLUMN replicas_per_msb integer CHECK (replicas_per_msb BETWEEN 1 AND replicas),
    ADD CONSTRAINT promises_replicas CHECK (num_nulls(replicas, replicas_per_msb) IN (0, 2)),
    ADD CONSTRAINT promises_replicas_kind CHECK (kind = 'guaranteed' OR replicas IS NULL);
COMMENT ON COLUMN promises.replicas IS 'n: copies of everything that it stores; null: no replica rule';
COMMENT ON COLUMN promises.replicas_per_msb IS 'k: at most k/n of its capacity may be in one MSB';

CREATE TABLE allowed_datacenters (
    promise_id bigint NOT NULL REFERENCES promises,
    datacenter_id integer NOT NULL REFERENCES datacenters,
    PRIMARY KEY (promise_id, datacenter_id)
);
COMMENT ON TABLE allowed_datacenters IS 'the datacenters a reservation is held to, its embedded buffer included; no row: all';
COMMENT ON COLUMN allowed_datacenters.promise_id IS 'the version of the promise it belongs to';
COMMENT ON COLUMN allowed_datacenters.datacenter_id IS 'a datacenter in which it may have servers';

CREATE TRIGGER allowed_datacenters_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON allowed_datacenters
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
