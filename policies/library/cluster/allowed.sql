-- H7 and H12: a restricted service runs on the nodes that allow it.
-- @hard_constraint
CREATE VIEW allowed_nodes AS
SELECT p.replica
FROM replicas p
JOIN services s ON s.service = p.service
WHERE NOT s.restricted
   OR p.node IN (SELECT a.node FROM allowed a WHERE a.service = p.service);
