-- GPU jobs take whole racks. reservations.parquet has the column whole_racks.
CREATE VIEW servers_of_rack AS
SELECT rack, count(*) AS servers FROM servers GROUP BY rack;

-- @hard_constraint
CREATE VIEW whole_racks_for_gpu AS
SELECT s.rack, r.reservation_id, count(*) AS held
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation AND r.whole_racks
JOIN servers_of_rack t ON t.rack = s.rack
GROUP BY s.rack, r.reservation_id, t.servers
HAVING count(*) = t.servers;
