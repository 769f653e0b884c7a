-- A reservation, and every version of what was promised to it. What is promised never changes: a
-- new version is added, and the reservation points to it.

CREATE TABLE promises (
    promise_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- A made shared buffer is named after its hardware type, behind a prefix of 14 characters.
    reservation text COLLATE "C" NOT NULL CHECK (char_length(reservation) BETWEEN 1 AND 142),
    version integer NOT NULL CHECK (version >= 1),
    -- The version before; the reference below makes versions whole: no hole, no fork.
    previous integer GENERATED ALWAYS AS (nullif(version, 1) - 1) STORED,
    kind text NOT NULL CHECK (kind IN ('guaranteed', 'shared_buffer', 'elastic')),
    owner text NOT NULL,
    capacity_micro bigint NOT NULL CHECK (capacity_micro BETWEEN 0 AND 1000000000000000),
    msb_buffer boolean NOT NULL,
    priority integer NOT NULL CHECK (priority >= 0),
    msb_alpha double precision CHECK (msb_alpha > 0 AND msb_alpha <= 1),
    rack_alpha double precision CHECK (rack_alpha > 0 AND rack_alpha <= 1),
    affinity_theta double precision CHECK (affinity_theta >= 0 AND affinity_theta < 'infinity'),
    host_profile text,
    promised_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (reservation, version),
    UNIQUE (promise_id, reservation, kind),
    FOREIGN KEY (reservation, previous) REFERENCES promises (reservation, version),
    CONSTRAINT promises_msb_buffer CHECK (kind = 'guaranteed' OR NOT msb_buffer),
    CONSTRAINT promises_elastic CHECK (kind <> 'elastic' OR capacity_micro = 0),
    CONSTRAINT promises_reserved_name
        CHECK (kind = 'shared_buffer' OR reservation NOT LIKE 'shared-buffer/%')
);
COMMENT ON TABLE promises IS 'what was promised to a reservation, version by version; rows are only ever added';
COMMENT ON COLUMN promises.promise_id IS 'what other tables refer to';
COMMENT ON COLUMN promises.reservation IS 'the name of the reservation, which may be gone by now';
COMMENT ON COLUMN promises.version IS '1, 2, 3, ... of this reservation';
COMMENT ON COLUMN promises.previous IS 'version - 1; null for the first';
COMMENT ON COLUMN promises.kind IS 'guaranteed, shared_buffer or elastic';
COMMENT ON COLUMN promises.owner IS 'the business unit that asked';
COMMENT ON COLUMN promises.capacity_micro IS 'requested capacity C in micro-RRU; of a shared buffer, millionths of a server; 0 for elastic';
COMMENT ON COLUMN promises.msb_buffer IS 'whether the capacity must survive the loss of any one MSB (eq. 6)';
COMMENT ON COLUMN promises.priority IS '0 is the most important';
COMMENT ON COLUMN promises.msb_alpha IS 'own limit of one MSB''s share; null: the region''s';
COMMENT ON COLUMN promises.rack_alpha IS 'own limit of one rack''s share; null: the region''s';
COMMENT ON COLUMN promises.affinity_theta IS 'own tolerance for eq. 7; null: the region''s';
COMMENT ON COLUMN promises.host_profile IS 'OS configuration wanted on its servers';
COMMENT ON COLUMN promises.promised_at IS 'when this version was stored';

CREATE TABLE rru_values (
    promise_id bigint NOT NULL REFERENCES promises,
    hardware_type_id integer NOT NULL REFERENCES hardware_types,
    value_micro bigint NOT NULL CHECK (value_micro BETWEEN 1 AND 1000000000000000),
    PRIMARY KEY (promise_id, hardware_type_id)
);
COMMENT ON TABLE rru_values IS 'V: what one server of a type is worth to a reservation; no row: not eligible';
COMMENT ON COLUMN rru_values.promise_id IS 'the version of the promise it belongs to';
COMMENT ON COLUMN rru_values.hardware_type_id IS 'the hardware type';
COMMENT ON COLUMN rru_values.value_micro IS 'V in micro-RRU';

CREATE TABLE affinities (
    promise_id bigint NOT NULL REFERENCES promises,
    datacenter_id integer NOT NULL REFERENCES datacenters,
    share double precision NOT NULL CHECK (share BETWEEN 0 AND 1),
    PRIMARY KEY (promise_id, datacenter_id)
);
COMMENT ON TABLE affinities IS 'A: the share of a reservation wanted in a datacenter (eq. 7)';
COMMENT ON COLUMN affinities.promise_id IS 'the version of the promise it belongs to';
COMMENT ON COLUMN affinities.datacenter_id IS 'the datacenter';
COMMENT ON COLUMN affinities.share IS 'the share, 0 to 1';

CREATE TRIGGER promises_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON promises
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER rru_values_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON rru_values
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER affinities_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON affinities
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE reservations (
    reservation_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reservation text COLLATE "C" NOT NULL UNIQUE,
    kind text NOT NULL,
    promise_id bigint NOT NULL UNIQUE,
    -- At the end of a transaction: two buffers may swap their types.
    buffer_type_id integer UNIQUE DEFERRABLE INITIALLY DEFERRED,
    made boolean NOT NULL DEFAULT false,
    UNIQUE (reservation_id, kind),
    FOREIGN KEY (promise_id, reservation, kind) REFERENCES promises (promise_id, reservation, kind),
    -- The type a shared buffer is of is one it has a value for.
    FOREIGN KEY (promise_id, buffer_type_id) REFERENCES rru_values (promise_id, hardware_type_id),
    CONSTRAINT reservations_buffer_type CHECK ((kind = 'shared_buffer') = (buffer_type_id IS NOT NULL)),
    CONSTRAINT reservations_made CHECK (kind = 'shared_buffer' OR NOT made)
);
COMMENT ON TABLE reservations IS 'the reservations there are; one that is removed keeps its promises and trail, by name';
COMMENT ON COLUMN reservations.reservation_id IS 'what other tables refer to';
COMMENT ON COLUMN reservations.reservation IS 'its name';
COMMENT ON COLUMN reservations.kind IS 'the kind of its promise';
COMMENT ON COLUMN reservations.promise_id IS 'the version of the promise that holds';
COMMENT ON COLUMN reservations.buffer_type_id IS 'of a shared buffer: its hardware type, which has no other';
COMMENT ON COLUMN reservations.made IS 'a shared buffer that nobody listed, made from the region''s fraction';

CREATE FUNCTION check_promise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.reservation <> OLD.reservation OR NEW.promise_id < OLD.promise_id THEN
        RAISE EXCEPTION 'reservation %: neither goes back to an older promise nor changes its name',
            OLD.reservation USING ERRCODE = 'check_violation', CONSTRAINT = 'reservations_promise';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER reservations_promise BEFORE UPDATE ON reservations
    FOR EACH ROW EXECUTE FUNCTION check_promise();
