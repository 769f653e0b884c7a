-- Servers on order: what was ordered, for which datacenter, and when it is expected. Forecasts of when a hardware type runs
-- out count what is open from its day on.

CREATE TABLE hardware_orders (
    order_id uuid PRIMARY KEY,
    hardware_type_id integer NOT NULL REFERENCES hardware_types,
    datacenter_id integer NOT NULL REFERENCES datacenters,
    servers integer NOT NULL CHECK (servers BETWEEN 1 AND 1000000),
    expected_on date NOT NULL CHECK (expected_on BETWEEN '2000-01-01' AND '2099-12-31'),
    ordered_by entity_name NOT NULL,
    ordered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    state text NOT NULL DEFAULT 'open',
    state_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changes integer NOT NULL DEFAULT 0 CHECK (changes >= 0)
);
COMMENT ON TABLE hardware_orders IS 'servers that were ordered, and what became of each order';
COMMENT ON COLUMN hardware_orders.order_id IS 'its id, ordered by time';
COMMENT ON COLUMN hardware_orders.hardware_type_id IS 'what was ordered';
COMMENT ON COLUMN hardware_orders.datacenter_id IS 'where it will be racked';
COMMENT ON COLUMN hardware_orders.servers IS 'how many; of an order that arrives in parts, those that have not arrived';
COMMENT ON COLUMN hardware_orders.expected_on IS 'the day on which they are expected to be in service, in UTC';
COMMENT ON COLUMN hardware_orders.ordered_by IS 'who entered it';
COMMENT ON COLUMN hardware_orders.ordered_at IS 'when it was entered';
COMMENT ON COLUMN hardware_orders.state IS 'see transitions';
COMMENT ON COLUMN hardware_orders.state_at IS 'since when it is in this state';
COMMENT ON COLUMN hardware_orders.changes IS 'how often it was changed: its version';
INSERT INTO transitions VALUES
    ('hardware_orders', 'new', 'open'),
    ('hardware_orders', 'open', 'arrived'),
    ('hardware_orders', 'open', 'cancelled');
CREATE TRIGGER hardware_orders_transition_insert BEFORE INSERT ON hardware_orders
    FOR EACH ROW EXECUTE FUNCTION check_transition();
CREATE TRIGGER hardware_orders_transition_update BEFORE UPDATE OF state ON hardware_orders
    FOR EACH ROW EXECUTE FUNCTION check_transition();
SELECT add_words('audit_trail', 'audit_trail_action_check', ARRAY['hardware_ordered', 'hardware_order_changed',
    'hardware_order_arrived', 'hardware_order_cancelled']);
