-- Two reservations share no datacenter.
CREATE VIEW apart_in_datacenter AS
SELECT * FROM (VALUES ('web', 'db')) AS pairs (one, other);

-- @hard_constraint
CREATE VIEW apart_by_datacenter AS
SELECT s.datacenter, p.one, p.other
FROM servers s
JOIN apart_in_datacenter p ON s.target_reservation = p.one OR s.target_reservation = p.other
GROUP BY s.datacenter, p.one, p.other
HAVING all_equal(s.target_reservation);
