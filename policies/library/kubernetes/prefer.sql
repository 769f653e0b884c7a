-- S1: pods of an app are spread over nodes.
-- @soft_constraint
CREATE VIEW spread AS
SELECT p.app, p.node
FROM pods p
WHERE p.node IS NOT NULL
GROUP BY p.app, p.node
HAVING count(*) <= 1;

-- S2 to S5: the least spare share of a node is to be as large as possible, in percent.
CREATE VIEW spare_share AS
SELECT c.node, c.resource,
       (-100.0 / c.capacity) * coalesce((SELECT sum(d.demand)
                                         FROM pods p JOIN demands d ON d.pod = p.pod
                                         WHERE p.node = c.node AND d.resource = c.resource), 0) AS spare
FROM capacities c;

-- @soft_constraint
CREATE VIEW balance AS
SELECT min(spare) FROM spare_share;

-- S6: nodes with the labels that a pod prefers, by weight.
-- @soft_constraint
CREATE VIEW preferred_nodes AS
SELECT sum(s.weight)
FROM pods p
JOIN node_preferences s ON s.pod = p.pod
JOIN node_labels l ON l.node = p.node AND l.key = s.key AND l.value = s.value;

-- S7: pods that prefer each other share a node.
-- @soft_constraint
CREATE VIEW preferred_pods AS
SELECT p.pod, q.pod AS other
FROM pod_preferences s
JOIN pods p ON p.pod = s.pod
JOIN pods q ON q.pod = s.other
WHERE p.node = q.node;

-- S8: what pods may use at most should be there.
-- @soft_constraint [weight=0.5]
CREATE VIEW within_limits AS
SELECT c.node
FROM pods p
JOIN limits m ON m.pod = p.pod
JOIN capacities c ON c.node = p.node AND c.resource = m.resource
GROUP BY c.node, c.resource, c.capacity
HAVING sum(m.most) <= c.capacity;

-- S9: nodes that have the image of a pod already.
-- @soft_constraint [weight=0.25]
CREATE VIEW images_there AS
SELECT p.pod
FROM pods p
WHERE p.node IN (SELECT i.node FROM node_images i WHERE i.image = p.image);
