-- H14, against its own: members of a group are on different nodes.
-- @hard_constraint
CREATE VIEW different_nodes AS
SELECT m.member_of
FROM members m
JOIN replicas p ON p.replica = m.replica
GROUP BY m.member_of
HAVING all_different(p.node);
