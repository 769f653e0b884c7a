-- One database holds one region: the unit of a solve, of a publication and of a backup.

-- Bytewise order is the order of snapshots; the length is the format's.
CREATE DOMAIN entity_name AS text COLLATE "C" CHECK (char_length(value) BETWEEN 1 AND 128);
COMMENT ON DOMAIN entity_name IS 'the name an owner gave something: 1 to 128 characters, ordered bytewise';

CREATE TABLE region (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    region entity_name NOT NULL,
    move_in_use double precision NOT NULL CHECK (move_in_use >= 0 AND move_in_use < 'infinity'),
    move_idle double precision NOT NULL CHECK (move_idle >= 0 AND move_idle < 'infinity'),
    spread_beta double precision NOT NULL CHECK (spread_beta >= 0 AND spread_beta < 'infinity'),
    buffer_tau double precision NOT NULL CHECK (buffer_tau >= 0 AND buffer_tau < 'infinity'),
    msb_alpha double precision CHECK (msb_alpha > 0 AND msb_alpha <= 1),
    rack_alpha double precision CHECK (rack_alpha > 0 AND rack_alpha <= 1),
    affinity_theta double precision NOT NULL
        CHECK (affinity_theta >= 0 AND affinity_theta < 'infinity'),
    shared_buffer_fraction double precision NOT NULL CHECK (shared_buffer_fraction BETWEEN 0 AND 1)
);
COMMENT ON TABLE region IS 'the region this database holds, its prices and limits; no row: none is loaded';
COMMENT ON COLUMN region.only_row IS 'makes a second row impossible';
COMMENT ON COLUMN region.region IS 'its name';
COMMENT ON COLUMN region.move_in_use IS 'price of moving a server in use: M of expression 1';
COMMENT ON COLUMN region.move_idle IS 'price of moving an idle server: M of expression 1';
COMMENT ON COLUMN region.spread_beta IS 'price per RRU beyond a spread limit: beta of expressions 2 and 3';
COMMENT ON COLUMN region.buffer_tau IS 'price per RRU of the largest MSB share: tau of expression 4';
COMMENT ON COLUMN region.msb_alpha IS 'largest share wanted in one MSB: alpha^F; null: the default rule';
COMMENT ON COLUMN region.rack_alpha IS 'largest share wanted in one rack: alpha^K; null: the default rule';
COMMENT ON COLUMN region.affinity_theta IS 'tolerance of a datacenter''s share: theta of eq. 7';
COMMENT ON COLUMN region.shared_buffer_fraction IS 'share of each hardware type kept as its shared buffer';

-- Legal states and transitions of everything that has states, as data: the trigger below is the
-- only judge, and a test compares the rows with the enums of the program.
CREATE TABLE transitions (
    machine text NOT NULL,
    source text NOT NULL,
    target text NOT NULL,
    PRIMARY KEY (machine, source, target)
);
COMMENT ON TABLE transitions IS 'which state may follow which';
COMMENT ON COLUMN transitions.machine IS 'the table whose column state is meant';
COMMENT ON COLUMN transitions.source IS 'the state before; new: the row is being inserted';
COMMENT ON COLUMN transitions.target IS 'the state after';

CREATE FUNCTION check_transition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before text := CASE TG_OP WHEN 'INSERT' THEN 'new' ELSE OLD.state END;
BEGIN
    IF NOT EXISTS (
        SELECT FROM transitions t
        WHERE t.machine = TG_TABLE_NAME AND t.source = before AND t.target = NEW.state
    ) THEN
        RAISE EXCEPTION '%: % may not become %', TG_TABLE_NAME, before, NEW.state
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_TABLE_NAME || '_transition';
    END IF;
    NEW.state_at := clock_timestamp();
    RETURN NEW;
END $$;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of %: rows are only ever added', lower(TG_OP), TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_TABLE_NAME || '_append_only';
END $$;
