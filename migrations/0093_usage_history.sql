-- Promised capacity and servers by reservation, hardware type and datacenter over time, for forecasts. A sample is taken
-- every five minutes; only what has changed is written. A cell without a row has had nothing.

CREATE TABLE usage_samples (
    at timestamptz PRIMARY KEY
);
COMMENT ON TABLE usage_samples IS 'when servers were counted: a time without a sample is unknown';
COMMENT ON COLUMN usage_samples.at IS 'the beginning of the five minutes in which it was taken';

CREATE TABLE usage_cells (
    cell_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reservation text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    hardware_type text COLLATE "C" NOT NULL,
    datacenter text COLLATE "C" NOT NULL,
    value_micro bigint NOT NULL CHECK (value_micro >= 0),
    UNIQUE (reservation, owner, hardware_type, datacenter, value_micro)
);
COMMENT ON TABLE usage_cells IS 'what is counted apart; names, because the history outlives what it is about';
COMMENT ON COLUMN usage_cells.cell_id IS 'what usage_changes refers to';
COMMENT ON COLUMN usage_cells.reservation IS 'the owner of the servers; empty: they are free';
COMMENT ON COLUMN usage_cells.owner IS 'the owner of the reservation; empty: the servers are free';
COMMENT ON COLUMN usage_cells.hardware_type IS 'their type; empty: the cell is of the promise, which has no type and no place';
COMMENT ON COLUMN usage_cells.datacenter IS 'their datacenter; empty: the cell is of the promise';
COMMENT ON COLUMN usage_cells.value_micro IS 'what one of the servers is worth to the reservation, in micro-RRU';
CREATE INDEX usage_cells_by_owner ON usage_cells (owner);

CREATE TABLE usage_changes (
    cell_id integer NOT NULL REFERENCES usage_cells,
    at timestamptz NOT NULL,
    promised_micro bigint NOT NULL CHECK (promised_micro >= 0),
    held integer NOT NULL CHECK (held >= 0),
    used integer NOT NULL CHECK (used BETWEEN 0 AND held),
    lent integer NOT NULL CHECK (lent BETWEEN 0 AND held),
    PRIMARY KEY (cell_id, at)
);
COMMENT ON TABLE usage_changes IS 'what a cell has from a sample on, until its next row';
COMMENT ON COLUMN usage_changes.cell_id IS 'the cell';
COMMENT ON COLUMN usage_changes.at IS 'the sample in which it was first seen so';
COMMENT ON COLUMN usage_changes.promised_micro IS 'promised capacity in micro-RRU, in the cell of the promise';
COMMENT ON COLUMN usage_changes.held IS 'servers in service that the reservation owns; of no reservation: free ones';
COMMENT ON COLUMN usage_changes.used IS 'of these, servers with running containers';
COMMENT ON COLUMN usage_changes.lent IS 'of these, servers lent to elastic reservations';
