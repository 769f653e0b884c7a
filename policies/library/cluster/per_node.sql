-- Section 6.1.3: at most two replicas of a service on a node.
-- @hard_constraint
CREATE VIEW per_node AS
SELECT p.service, p.node, count(*) AS replicas
FROM replicas p
GROUP BY p.service, p.node
HAVING count(*) <= 2;
