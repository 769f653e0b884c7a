-- H9: a pod runs in the zone of each of its volumes.
-- @hard_constraint
CREATE VIEW volume_zones AS
SELECT p.pod, v.volume
FROM pods p
JOIN volumes v ON v.pod = p.pod
WHERE p.node IS NULL
   OR p.node IN (SELECT l.node FROM node_labels l WHERE l.key = 'zone' AND l.value = v.zone);
