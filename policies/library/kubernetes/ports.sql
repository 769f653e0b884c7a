-- H6: two pods on a node share no port of the host. The address 0.0.0.0 is every address.
CREATE VIEW port_conflicts AS
SELECT DISTINCT a.pod AS one, b.pod AS other
FROM ports a
JOIN ports b ON a.port = b.port AND a.protocol = b.protocol AND a.pod < b.pod
WHERE a.ip = b.ip OR a.ip = '0.0.0.0' OR b.ip = '0.0.0.0';

-- @hard_constraint
CREATE VIEW ports_free AS
SELECT p.pod, q.pod AS other
FROM port_conflicts c
JOIN pods p ON p.pod = c.one
JOIN pods q ON q.pod = c.other
WHERE p.node IS NULL
   OR q.node IS NULL
   OR p.node <> q.node;
