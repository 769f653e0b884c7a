-- pod1 and pod2 share no zone.
-- @hard_constraint
CREATE VIEW apart AS
SELECT p.pod, q.pod AS other
FROM pods p
JOIN node_labels l ON l.node = p.node AND l.key = 'zone'
JOIN pods q ON p.pod = 'pod1' AND q.pod = 'pod2'
JOIN node_labels m ON m.node = q.node AND m.key = 'zone'
WHERE l.value <> m.value;
