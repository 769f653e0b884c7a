-- S2 to S5, figure 7: the least spare capacity of a node is to be as large as possible.
CREATE VIEW spare AS
SELECT c.node, c.metric,
       c.capacity - coalesce((SELECT sum(d.demand)
                              FROM replicas p JOIN demands d ON d.replica = p.replica
                              WHERE p.node = c.node AND d.metric = c.metric), 0) AS spare
FROM capacities c;

-- @soft_constraint
CREATE VIEW balance AS
SELECT min(spare) FROM spare;
