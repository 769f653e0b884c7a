-- H15: pods of an app are in one zone.
-- @hard_constraint
CREATE VIEW one_zone AS
SELECT p.app
FROM pods p
JOIN node_labels l ON l.node = p.node AND l.key = 'zone'
GROUP BY p.app
HAVING all_equal(l.value);
