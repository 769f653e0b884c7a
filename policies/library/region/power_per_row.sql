-- Servers that reservations hold draw at most this much power in each row of racks. racks.parquet has the
-- column rack_row.
CREATE VIEW row_limits AS
SELECT * FROM (VALUES ('row0', 1000), ('row1', 1300)) AS limits (rack_row, watts);

-- @hard_constraint
CREATE VIEW power_per_row AS
SELECT k.rack_row, sum(s.power_watts) AS watts
FROM servers s
JOIN racks k ON k.rack = s.rack
JOIN row_limits l ON l.rack_row = k.rack_row
WHERE s.target_reservation IS NOT NULL
GROUP BY k.rack_row, l.watts
HAVING sum(s.power_watts) <= l.watts;
