-- Section 6.1.3: what runs stays or is evicted; a pod is worth more than any four of the priority below.
-- @hard_constraint
CREATE VIEW stays_or_evicted AS
SELECT p.pod
FROM pods p
WHERE p.current_node IS NULL
   OR p.node IS NULL
   OR p.node = p.current_node;

-- @soft_constraint
CREATE VIEW worth AS
SELECT sum(CASE p.priority WHEN 3 THEN 1000000 WHEN 2 THEN 1000 ELSE 1 END)
FROM pods p
WHERE p.node IS NOT NULL;
