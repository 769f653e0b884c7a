-- H5: what pods on a node ask of a resource is at most what the node has; one without the resource has none.
-- @hard_constraint
CREATE VIEW capacity AS
SELECT c.node, c.resource
FROM pods p
JOIN demands d ON d.pod = p.pod
JOIN capacities c ON c.node = p.node AND c.resource = d.resource
GROUP BY c.node, c.resource, c.capacity
HAVING sum(d.demand) <= c.capacity;

-- @hard_constraint
CREATE VIEW has_resource AS
SELECT p.pod, d.resource
FROM pods p
JOIN demands d ON d.pod = p.pod
WHERE p.node IS NULL
   OR d.demand = 0
   OR p.node IN (SELECT c.node FROM capacities c WHERE c.resource = d.resource);
