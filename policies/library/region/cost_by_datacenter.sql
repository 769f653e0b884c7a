-- Servers in expensive datacenters are left free where others would do.
CREATE VIEW price_of AS
SELECT * FROM (VALUES ('dc0', 1.5), ('dc1', 1.0)) AS prices (datacenter, price);

-- @soft_constraint [weight=0.5]
CREATE VIEW cost_by_datacenter AS
SELECT -sum(p.price)
FROM servers s
JOIN price_of p ON p.datacenter = s.datacenter
WHERE s.target_reservation IS NOT NULL;
