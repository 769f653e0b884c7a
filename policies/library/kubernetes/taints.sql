-- H10 and H11: a pod tolerates each taint of its node. A toleration without key or effect is for all of them.
CREATE VIEW tolerated AS
SELECT DISTINCT l.pod, t.taint
FROM tolerations l
JOIN taints t ON (l.key IS NULL OR l.key = t.key) AND (l.effect IS NULL OR l.effect = t.effect)
WHERE l.op = 'Exists' OR l.value = t.value;

-- @hard_constraint
CREATE VIEW taints_tolerated AS
SELECT p.pod, t.taint
FROM pods p
JOIN taints t ON t.node = p.node
WHERE t.effect = 'PreferNoSchedule'
   OR EXISTS (SELECT 1 FROM tolerated l WHERE l.pod = p.pod AND l.taint = t.taint);
