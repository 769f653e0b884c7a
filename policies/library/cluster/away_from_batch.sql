-- H14, anti-affinity: no replica of web is on a node that has one of batch.
-- @hard_constraint
CREATE VIEW away_from_batch AS
SELECT p.replica
FROM replicas p
WHERE p.service <> 'web'
   OR NOT EXISTS (SELECT 1 FROM replicas b WHERE b.service = 'batch' AND b.node = p.node);
