-- H5: what replicas on a node need of a metric is at most what the node has.
-- @hard_constraint
CREATE VIEW capacity AS
SELECT c.node, c.metric
FROM replicas p
JOIN demands d ON d.replica = p.replica
JOIN capacities c ON c.node = p.node AND c.metric = d.metric
GROUP BY c.node, c.metric, c.capacity
HAVING sum(d.demand) <= c.capacity;
