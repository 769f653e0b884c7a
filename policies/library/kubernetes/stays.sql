-- H8: a pod that runs stays where it is.
-- @hard_constraint
CREATE VIEW stays AS
SELECT p.pod
FROM pods p
WHERE p.current_node IS NULL
   OR p.node = p.current_node;
