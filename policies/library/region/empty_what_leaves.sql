-- Racks that leave next quarter become empty; each server still held costs 3, and at most two may be.
CREATE VIEW leaving AS
SELECT * FROM (VALUES ('r0')) AS racks (rack);

-- @soft_constraint [weight=3, at_most=2]
CREATE VIEW empty_what_leaves AS
SELECT s.server_id
FROM servers s
JOIN leaving l ON l.rack = s.rack
WHERE s.target_reservation IS NULL;
