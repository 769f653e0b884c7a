-- H15: replicas of a service are in one failure domain.
-- @hard_constraint
CREATE VIEW one_zone AS
SELECT p.service
FROM replicas p
JOIN domains d ON d.node = p.node AND d.level = 'zone'
GROUP BY p.service
HAVING all_equal(d.domain);
