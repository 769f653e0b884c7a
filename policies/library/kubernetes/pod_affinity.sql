-- H14: a pod runs on a node with another pod that matches one of its expressions, and without any that it avoids.
CREATE VIEW pods_with AS
SELECT e.pod, e.avoid, e.op, l.pod AS other
FROM pod_expressions e
JOIN pod_labels l ON l.key = e.key AND l.pod <> e.pod
WHERE e.op IN ('Exists', 'DoesNotExist')
   OR l.value = e.value
GROUP BY e.pod, e.avoid, e.op, l.pod;

CREATE VIEW pod_matches AS
SELECT pod, avoid, other
FROM pods_with
WHERE op IN ('In', 'Exists')
UNION ALL
SELECT e.pod, e.avoid, q.pod AS other
FROM (SELECT DISTINCT pod, avoid, op FROM pod_expressions WHERE op IN ('NotIn', 'DoesNotExist')) e
JOIN (SELECT pod FROM pods) q ON q.pod <> e.pod
LEFT ANTI JOIN pods_with w
  ON w.pod = e.pod AND w.avoid = e.avoid AND w.op = e.op AND w.other = q.pod;

-- @hard_constraint
CREATE VIEW pod_affinity AS
SELECT p.pod
FROM pods p
WHERE p.node IS NULL
   OR p.pod NOT IN (SELECT e.pod FROM pod_expressions e WHERE NOT e.avoid)
   OR p.node IN (SELECT q.node FROM pods q JOIN pod_matches m ON m.other = q.pod
                 WHERE m.pod = p.pod AND NOT m.avoid);

-- @hard_constraint
CREATE VIEW pod_anti_affinity AS
SELECT p.pod
FROM pods p
WHERE NOT EXISTS (SELECT 1 FROM pods q JOIN pod_matches m ON m.other = q.pod
                  WHERE m.pod = p.pod AND m.avoid AND q.node = p.node);
