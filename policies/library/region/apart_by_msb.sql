-- Two reservations share no MSB.
CREATE VIEW apart_in_msb AS
SELECT * FROM (VALUES ('web', 'db')) AS pairs (one, other);

-- @hard_constraint
CREATE VIEW apart_by_msb AS
SELECT s.msb, p.one, p.other
FROM servers s
JOIN apart_in_msb p ON s.target_reservation = p.one OR s.target_reservation = p.other
GROUP BY s.msb, p.one, p.other
HAVING all_equal(s.target_reservation);
