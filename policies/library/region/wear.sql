-- The disks of a reservation's servers are worn by at most half on average. servers.parquet has the column
-- wear_percent.
-- @hard_constraint
CREATE VIEW wear AS
SELECT s.target_reservation, sum(s.wear_percent) AS percent, count(s.wear_percent) AS servers
FROM servers s
WHERE s.target_reservation IS NOT NULL AND s.wear_percent IS NOT NULL
GROUP BY s.target_reservation
HAVING sum(s.wear_percent) <= 50 * count(s.wear_percent);
