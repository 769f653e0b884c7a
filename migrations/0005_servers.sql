-- Servers and their binding: current (who owns it now), target (who should), loan (who borrows it).
-- Three columns, three meanings, one writer each.

CREATE TABLE servers (
    server_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    server entity_name NOT NULL,
    rack_id integer NOT NULL,
    hardware_type_id integer NOT NULL,
    current_reservation_id integer,
    target_reservation_id integer,
    target_version bigint,
    loan_reservation_id integer,
    loan_kind text GENERATED ALWAYS AS (CASE WHEN loan_reservation_id IS NOT NULL THEN 'elastic' END) STORED,
    generation bigint NOT NULL DEFAULT 1 CHECK (generation >= 1),
    power_watts double precision CHECK (power_watts >= 0 AND power_watts < 'infinity'),
    target_pending boolean NOT NULL DEFAULT false,
    in_use boolean NOT NULL DEFAULT false,
    CONSTRAINT servers_name UNIQUE (server),
    CONSTRAINT servers_rack FOREIGN KEY (rack_id) REFERENCES racks,
    CONSTRAINT servers_hardware_type FOREIGN KEY (hardware_type_id) REFERENCES hardware_types,
    CONSTRAINT servers_current FOREIGN KEY (current_reservation_id) REFERENCES reservations,
    CONSTRAINT servers_target FOREIGN KEY (target_reservation_id) REFERENCES reservations,
    -- Only an elastic reservation borrows.
    CONSTRAINT servers_loan FOREIGN KEY (loan_reservation_id, loan_kind)
        REFERENCES reservations (reservation_id, kind),
    CONSTRAINT servers_orphan_target CHECK (target_pending OR target_reservation_id IS NULL),
    CONSTRAINT servers_unversioned_target CHECK (target_pending = (target_version IS NOT NULL))
    -- Room on each page for new versions of its rows: a publication then touches no index.
) WITH (fillfactor = 85);
COMMENT ON TABLE servers IS 'the servers there are; each has one row and so at most one owner';
COMMENT ON COLUMN servers.server_id IS 'what other tables refer to';
COMMENT ON COLUMN servers.server IS 'its name';
COMMENT ON COLUMN servers.rack_id IS 'the rack it stands in, and so its MSB and datacenter';
COMMENT ON COLUMN servers.hardware_type_id IS 'its hardware type';
COMMENT ON COLUMN servers.current_reservation_id IS 'current: who owns it now; null: nobody. Written when a move is done';
COMMENT ON COLUMN servers.target_reservation_id IS 'target of a move under way; null with target_pending: to nobody. Written by publications';
COMMENT ON COLUMN servers.target_version IS 'the version that decided the move under way';
COMMENT ON COLUMN servers.loan_reservation_id IS 'loan: the elastic reservation that borrows it; ownership stays in current';
COMMENT ON COLUMN servers.loan_kind IS 'the kind a borrower must be of';
COMMENT ON COLUMN servers.generation IS 'counts what a decision rests on: changes of owner, rack and type';
COMMENT ON COLUMN servers.power_watts IS 'typical draw under load, in watts';
COMMENT ON COLUMN servers.target_pending IS 'a move decided earlier is under way';
COMMENT ON COLUMN servers.in_use IS 'containers of a guaranteed reservation run on it';
-- Lists a reservation's servers in order of name, a page at a time.
CREATE INDEX servers_by_current ON servers (current_reservation_id, server);
CREATE INDEX servers_by_loan ON servers (loan_reservation_id) WHERE loan_reservation_id IS NOT NULL;

CREATE FUNCTION count_generation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.generation <> OLD.generation THEN
        RAISE EXCEPTION 'server %: its generation counts by itself', OLD.server
            USING ERRCODE = 'check_violation', CONSTRAINT = 'servers_generation';
    END IF;
    NEW.generation := OLD.generation + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER servers_generation BEFORE UPDATE ON servers FOR EACH ROW
    WHEN (OLD.current_reservation_id IS DISTINCT FROM NEW.current_reservation_id
        OR OLD.rack_id <> NEW.rack_id OR OLD.hardware_type_id <> NEW.hardware_type_id
        OR OLD.generation <> NEW.generation)
    EXECUTE FUNCTION count_generation();

-- See check_versions.
CREATE TRIGGER servers_target_version_insert AFTER INSERT ON servers
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION check_versions('target_version');
CREATE TRIGGER servers_target_version AFTER UPDATE ON servers
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION check_versions('target_version');

-- The first load of a region writes every row there is. Checking its references and indexing its
-- names row by row takes ten times as long as doing so at the end, so a load into an empty table
-- puts both off: the definitions are kept as the catalogue has them, and made again in the same
-- transaction. One that fails leaves everything as it was.
CREATE FUNCTION begin_first_load() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    step record;
BEGIN
    IF EXISTS (SELECT FROM servers)
        OR NOT (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'servers'::regclass)
    THEN
        RETURN false;
    END IF;
    CREATE TEMPORARY TABLE put_off ON COMMIT DROP AS
        SELECT 1 AS step, format('ALTER TABLE servers DROP CONSTRAINT %I', conname) AS drop_it,
            format('ALTER TABLE servers ADD CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)) AS make_it
        FROM pg_constraint WHERE conrelid = 'servers'::regclass AND contype = 'f'
        UNION ALL
        SELECT 0, format('DROP INDEX %I', indexrelid::regclass::text), pg_get_indexdef(indexrelid)
        FROM pg_index WHERE indrelid = 'servers'::regclass AND NOT indisunique;
    FOR step IN SELECT drop_it FROM put_off LOOP
        EXECUTE step.drop_it;
    END LOOP;
    RETURN true;
END $$;
CREATE FUNCTION end_first_load() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    made record;
BEGIN
    FOR made IN SELECT make_it FROM put_off ORDER BY step LOOP
        EXECUTE made.make_it;
    END LOOP;
END $$;

CREATE TABLE moves (
    move_id uuid PRIMARY KEY,
    server_id integer REFERENCES servers ON DELETE SET NULL,
    server text COLLATE "C" NOT NULL,
    source_reservation text COLLATE "C",
    target_reservation text COLLATE "C",
    target_version bigint NOT NULL REFERENCES target_versions,
    state text NOT NULL,
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    open boolean NOT NULL GENERATED ALWAYS AS
        (state NOT IN ('bound', 'superseded', 'failed', 'expired')) STORED,
    CONSTRAINT moves_server CHECK (server_id IS NOT NULL OR state IN ('bound', 'superseded', 'failed', 'expired'))
);
COMMENT ON TABLE moves IS 'single servers changing owner, with their steps';
COMMENT ON COLUMN moves.move_id IS 'its id, ordered by time';
COMMENT ON COLUMN moves.server_id IS 'the server; null when it is gone and the move long ended';
COMMENT ON COLUMN moves.server IS 'the server, by name';
COMMENT ON COLUMN moves.source_reservation IS 'who owned it; null: nobody';
COMMENT ON COLUMN moves.target_reservation IS 'who shall; null: nobody';
COMMENT ON COLUMN moves.target_version IS 'the version of the targets it serves';
COMMENT ON COLUMN moves.state IS 'see transitions';
COMMENT ON COLUMN moves.state_at IS 'since when it is in this state';
COMMENT ON COLUMN moves.opened_at IS 'when it began';
COMMENT ON COLUMN moves.open IS 'whether it is under way';
CREATE UNIQUE INDEX moves_one_open ON moves (server_id) WHERE open;
-- For servers that are removed: their ended moves let go of them.
CREATE INDEX moves_by_server ON moves (server_id) WHERE server_id IS NOT NULL;
INSERT INTO transitions
    SELECT 'moves', a.state, b.state
    FROM (VALUES (0, 'new'), (1, 'pending'), (2, 'preempting'), (3, 'cleaning_up'), (4, 'reconfiguring')) a (step, state),
         (VALUES (1, 'pending'), (2, 'preempting'), (3, 'cleaning_up'), (4, 'reconfiguring'), (5, 'bound'),
                 (6, 'superseded'), (6, 'failed'), (6, 'expired')) b (step, state)
    -- Steps may be left out, never gone back; any may be the last.
    WHERE a.step < b.step AND (a.step > 0 OR b.step = 1);
CREATE TRIGGER moves_transition_insert BEFORE INSERT ON moves
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER moves_transition_update BEFORE UPDATE OF state ON moves
    FOR EACH ROW EXECUTE FUNCTION check_transition();
