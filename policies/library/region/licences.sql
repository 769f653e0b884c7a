-- A product runs on at most as many servers as there are licences.
CREATE VIEW licences AS
SELECT * FROM (VALUES ('oracle', 'db', 2), ('oracle', 'ledger', 2)) AS bought (product, reservation_id, seats);

-- @hard_constraint
CREATE VIEW licences_in_use AS
SELECT l.product, count(*) AS used
FROM servers s
JOIN licences l ON l.reservation_id = s.target_reservation
GROUP BY l.product, l.seats
HAVING count(*) <= l.seats;
