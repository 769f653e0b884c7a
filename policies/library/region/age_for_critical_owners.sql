-- Critical owners get hardware of 2024 or later.
CREATE VIEW bought_in AS
SELECT * FROM (VALUES ('C1', 2019), ('C3', 2025)) AS types (hardware_type, year);

-- @hard_constraint
CREATE VIEW age_for_critical_owners AS
SELECT s.server_id, r.owner
FROM servers s
JOIN reservations r ON r.reservation_id = s.target_reservation
JOIN bought_in b ON b.hardware_type = s.hardware_type
WHERE r.owner <> 'payments' OR b.year >= 2024;
