-- No owner has more than a third of the servers of a hardware type.
CREATE VIEW servers_of_type AS
SELECT hardware_type, count(*) AS servers FROM servers GROUP BY hardware_type;

-- @hard_constraint
CREATE VIEW owner_share_of_type AS
SELECT r.owner, s.hardware_type, count(*) AS held
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation
JOIN servers_of_type t ON t.hardware_type = s.hardware_type
GROUP BY r.owner, s.hardware_type, t.servers
HAVING 3 * count(*) <= t.servers;
