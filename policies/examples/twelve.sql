-- Twelve policies of a generated region (`ras snapshot generate --servers 100000 --reservations 400 --state steady --seed 1`), to
-- measure what they cost a solve (docs/results.md). Limits are shares of what is installed, so that they fit other sizes too.

CREATE VIEW installed_msb AS
SELECT msb, sum(power_watts) AS watts FROM servers GROUP BY msb;
CREATE VIEW installed_dc AS
SELECT datacenter, sum(power_watts) AS watts FROM servers GROUP BY datacenter;
CREATE VIEW servers_of_type AS
SELECT hardware_type, count(*) AS servers FROM servers GROUP BY hardware_type;
CREATE VIEW servers_of_msb AS
SELECT msb, count(*) AS servers FROM servers GROUP BY msb;
CREATE VIEW of_loop AS
SELECT datacenter, hardware_type, sum(power_watts) AS watts FROM servers GROUP BY datacenter, hardware_type;

-- Held servers draw at most 97 % of the installed power of their MSB.
-- @hard_constraint
CREATE VIEW power_per_msb AS
SELECT s.msb
FROM servers s
JOIN installed_msb i ON i.msb = s.msb
WHERE s.target_reservation IS NOT NULL
GROUP BY s.msb, i.watts
HAVING 100 * sum(s.power_watts) <= 97 * i.watts;

-- Held servers draw at most 96 % of the installed power of their datacenter.
-- @hard_constraint
CREATE VIEW power_per_datacenter AS
SELECT s.datacenter
FROM servers s
JOIN installed_dc i ON i.datacenter = s.datacenter
WHERE s.target_reservation IS NOT NULL
GROUP BY s.datacenter, i.watts
HAVING 100 * sum(s.power_watts) <= 96 * i.watts;

-- No owner has more than a third of the servers of a hardware type.
-- @hard_constraint
CREATE VIEW owner_share_of_type AS
SELECT r.owner, s.hardware_type
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation
JOIN servers_of_type t ON t.hardware_type = s.hardware_type
GROUP BY r.owner, s.hardware_type, t.servers
HAVING 3 * count(*) <= t.servers;

-- No owner has more than a fifth of the servers of an MSB.
-- @hard_constraint
CREATE VIEW owner_share_of_msb AS
SELECT r.owner, s.msb
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation
JOIN servers_of_msb t ON t.msb = s.msb
GROUP BY r.owner, s.msb, t.servers
HAVING 5 * count(*) <= t.servers;

-- At least 4 % of each hardware type stay free.
-- @hard_constraint
CREATE VIEW spare_of_type AS
SELECT s.hardware_type
FROM servers s
JOIN servers_of_type t ON t.hardware_type = s.hardware_type
WHERE s.target_reservation IS NOT NULL
GROUP BY s.hardware_type, t.servers
HAVING 100 * count(*) <= 96 * t.servers;

-- A product of two owners runs on at most 12,000 servers.
-- @hard_constraint
CREATE VIEW licences AS
SELECT count(*) AS used
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation
WHERE r.owner IN ('generated-unit-03', 'generated-unit-04')
GROUP BY r.kind
HAVING count(*) <= 12000;

-- An owner gets no C9-S1.
-- @hard_constraint
CREATE VIEW age_for_owners AS
SELECT s.server_id
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation
WHERE r.owner <> 'generated-unit-07' OR s.hardware_type <> 'C9-S1';

-- Reservations of the first priority have at most 90 % of an MSB.
-- @hard_constraint
CREATE VIEW first_priority_per_msb AS
SELECT s.msb
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation
JOIN servers_of_msb t ON t.msb = s.msb
WHERE r.priority = 0
GROUP BY s.msb, t.servers
HAVING 10 * count(*) <= 9 * t.servers;

-- Held servers of a type in a datacenter draw no more power than is installed: always true, and so without effect.
-- @hard_constraint
CREATE VIEW cooling_loops AS
SELECT s.datacenter, s.hardware_type
FROM servers s
JOIN of_loop l ON l.datacenter = s.datacenter AND l.hardware_type = s.hardware_type
WHERE s.target_reservation IS NOT NULL
GROUP BY s.datacenter, s.hardware_type, l.watts
HAVING 100 * sum(s.power_watts) <= 100 * l.watts;

-- No owner draws more than 9 MW.
-- @hard_constraint
CREATE VIEW owner_power AS
SELECT r.owner
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation
GROUP BY r.owner
HAVING sum(s.power_watts) <= 9000000;

-- Another owner gets no C6-S2.
-- @hard_constraint
CREATE VIEW residency AS
SELECT s.server_id
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation
WHERE r.owner <> 'generated-unit-11' OR s.hardware_type <> 'C6-S2';

-- Buffers and elastic reservations have at most a tenth of an MSB.
-- @hard_constraint
CREATE VIEW buffers_per_msb AS
SELECT s.msb
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation
JOIN servers_of_msb t ON t.msb = s.msb
WHERE r.kind <> 'guaranteed'
GROUP BY s.msb, t.servers
HAVING 10 * count(*) <= t.servers;
