-- Section 6.1.3: what runs stays or is evicted; a replica is worth more than all of lower priority together.
CREATE VIEW worths AS
SELECT * FROM (VALUES ('high', 1000000), ('mid', 1000), ('low', 1)) AS w (service, worth);

-- @hard_constraint
CREATE VIEW stays_or_evicted AS
SELECT p.replica
FROM replicas p
WHERE p.current_node IS NULL
   OR p.node IS NULL
   OR p.node = p.current_node;

-- @soft_constraint
CREATE VIEW worth AS
SELECT sum(w.worth)
FROM replicas p
JOIN worths w ON w.service = p.service
WHERE p.node IS NOT NULL;
