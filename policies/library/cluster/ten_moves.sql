-- Section 6.2: the most and the least used node are as near as ten moves can bring them, in percent of memory.
-- @hard_constraint
CREATE VIEW ten_moves AS
SELECT count(*) AS moves
FROM replicas p
WHERE p.node <> p.current_node
HAVING count(*) <= 10;

CREATE VIEW used AS
SELECT c.node,
       (100.0 / c.capacity) * coalesce((SELECT sum(d.demand)
                                        FROM replicas p JOIN demands d ON d.replica = p.replica
                                        WHERE p.node = c.node AND d.metric = c.metric), 0) AS percent
FROM capacities c
WHERE c.metric = 'memory';

-- @soft_constraint
CREATE VIEW difference AS
SELECT min(percent) - max(percent) FROM used;
