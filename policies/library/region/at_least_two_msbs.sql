-- Reservations of the first priority have servers in at least two MSBs.
-- @hard_constraint
CREATE VIEW at_least_two_msbs AS
SELECT r.reservation_id
FROM reservations r
WHERE r.priority > 0
   OR (SELECT count(DISTINCT s.msb) FROM servers s
       WHERE s.target_reservation = r.reservation_id) >= 2;
