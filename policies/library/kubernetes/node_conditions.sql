-- H1 to H4: pods run on nodes that are ready and under no pressure.
-- @hard_constraint
CREATE VIEW node_conditions AS
SELECT p.pod, n.node
FROM pods p
JOIN nodes n ON n.node = p.node
WHERE n.ready
  AND NOT n.unschedulable
  AND NOT n.memory_pressure
  AND NOT n.disk_pressure
  AND NOT n.pid_pressure
  AND NOT n.network_unavailable;
