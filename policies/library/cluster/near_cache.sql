-- H14, affinity: each replica of web is on a node that has one of cache.
-- @hard_constraint
CREATE VIEW near_cache AS
SELECT p.replica
FROM replicas p
WHERE p.service <> 'web'
   OR EXISTS (SELECT 1 FROM replicas c WHERE c.service = 'cache' AND c.node = p.node);
