-- H1 to H4, and H8: nodes that are up take replicas; closed ones keep what they have.
-- @hard_constraint
CREATE VIEW node_state AS
SELECT p.replica
FROM replicas p
JOIN nodes n ON n.node = p.node
WHERE n.state = 'up' OR (n.state = 'closed' AND p.current_node = n.node);
