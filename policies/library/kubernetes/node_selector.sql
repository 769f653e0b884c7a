-- H7: a pod runs on a node that has each label it selects.
-- @hard_constraint
CREATE VIEW node_selector AS
SELECT p.pod, s.key
FROM pods p
JOIN node_selectors s ON s.pod = p.pod
WHERE p.node IS NULL
   OR p.node IN (SELECT l.node FROM node_labels l WHERE l.key = s.key AND l.value = s.value);
