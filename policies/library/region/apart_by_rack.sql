-- Two reservations share no rack.
CREATE VIEW pairs_apart AS
SELECT * FROM (VALUES ('web', 'db')) AS pairs (one, other);

-- @hard_constraint
CREATE VIEW apart_by_rack AS
SELECT s.rack, p.one, p.other
FROM servers s
JOIN pairs_apart p ON s.target_reservation = p.one OR s.target_reservation = p.other
GROUP BY s.rack, p.one, p.other
HAVING all_equal(s.target_reservation);
