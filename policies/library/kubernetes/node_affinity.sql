-- H12 and H13: a pod runs on a node that matches all expressions of one of its terms.
CREATE VIEW nodes_with AS
SELECT e.pod, e.term, e.key, e.op, l.node
FROM node_expressions e
JOIN node_labels l ON l.key = e.key
WHERE e.op IN ('Exists', 'DoesNotExist')
   OR l.value = e.value
GROUP BY e.pod, e.term, e.key, e.op, l.node;

CREATE VIEW node_matches AS
SELECT pod, term, key, op, node
FROM nodes_with
WHERE op IN ('In', 'Exists')
UNION ALL
SELECT e.pod, e.term, e.key, e.op, n.node
FROM (SELECT DISTINCT pod, term, key, op FROM node_expressions WHERE op IN ('NotIn', 'DoesNotExist')) e
CROSS JOIN nodes n
LEFT ANTI JOIN nodes_with w
  ON w.pod = e.pod AND w.term = e.term AND w.key = e.key AND w.op = e.op AND w.node = n.node;

CREATE VIEW node_terms AS
SELECT pod, term, count(*) AS expressions
FROM (SELECT DISTINCT pod, term, key, op FROM node_expressions) e
GROUP BY pod, term;

CREATE VIEW candidate_nodes AS
SELECT m.pod, m.node
FROM node_matches m
JOIN node_terms t ON t.pod = m.pod AND t.term = m.term
GROUP BY m.pod, m.term, m.node, t.expressions
HAVING count(*) = t.expressions;

-- @hard_constraint
CREATE VIEW node_affinity AS
SELECT p.pod
FROM pods p
WHERE p.node IS NULL
   OR p.pod NOT IN (SELECT e.pod FROM node_expressions e)
   OR p.node IN (SELECT c.node FROM candidate_nodes c WHERE c.pod = p.pod);
