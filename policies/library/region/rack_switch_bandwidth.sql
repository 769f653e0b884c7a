-- Servers that reservations hold send at most what their rack's switch carries. servers.parquet has the
-- column nic_gbps, racks.parquet has switch_gbps.
-- @hard_constraint
CREATE VIEW rack_switch_bandwidth AS
SELECT k.rack, sum(s.nic_gbps) AS gbps
FROM servers s
JOIN racks k ON k.rack = s.rack
WHERE s.target_reservation IS NOT NULL
GROUP BY k.rack, k.switch_gbps
HAVING sum(s.nic_gbps) <= k.switch_gbps;
