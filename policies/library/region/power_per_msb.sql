-- Servers that reservations hold draw at most this much power in each MSB.
CREATE VIEW power_limits AS
SELECT * FROM (VALUES ('m0', 1000), ('m1', 800)) AS limits (msb, watts);

-- @hard_constraint
CREATE VIEW power_per_msb AS
SELECT s.msb, sum(s.power_watts) AS watts
FROM servers s
JOIN power_limits l ON l.msb = s.msb
WHERE s.target_reservation IS NOT NULL
GROUP BY s.msb, l.watts
HAVING sum(s.power_watts) <= l.watts;
