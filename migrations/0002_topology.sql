-- Where servers stand and what they are. A rack refers to its MSB and an MSB to its datacenter, so
-- no server can lie in two of a kind. Names stay when the last server is gone: they are few.

CREATE TABLE datacenters (
    datacenter_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    datacenter entity_name NOT NULL UNIQUE
);
COMMENT ON TABLE datacenters IS 'datacenters of the region';
COMMENT ON COLUMN datacenters.datacenter_id IS 'what other tables refer to';
COMMENT ON COLUMN datacenters.datacenter IS 'its name';

CREATE TABLE msbs (
    msb_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    msb entity_name NOT NULL UNIQUE,
    datacenter_id integer NOT NULL REFERENCES datacenters
);
COMMENT ON TABLE msbs IS 'main switch boards: the largest fault domains inside a datacenter';
COMMENT ON COLUMN msbs.msb_id IS 'what other tables refer to';
COMMENT ON COLUMN msbs.msb IS 'its name';
COMMENT ON COLUMN msbs.datacenter_id IS 'the datacenter it lies in';

CREATE TABLE racks (
    rack_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rack entity_name NOT NULL UNIQUE,
    msb_id integer NOT NULL REFERENCES msbs
);
COMMENT ON TABLE racks IS 'racks';
COMMENT ON COLUMN racks.rack_id IS 'what other tables refer to';
COMMENT ON COLUMN racks.rack IS 'its name';
COMMENT ON COLUMN racks.msb_id IS 'the MSB it lies in';

CREATE TABLE hardware_types (
    hardware_type_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hardware_type entity_name NOT NULL UNIQUE
);
COMMENT ON TABLE hardware_types IS 'hardware types';
COMMENT ON COLUMN hardware_types.hardware_type_id IS 'what other tables refer to';
COMMENT ON COLUMN hardware_types.hardware_type IS 'its name';
