-- Section 6.1.3: no node has more pods of an app than its share, rounded up.
CREATE VIEW shares AS
SELECT p.app, (p.pods + n.nodes - 1) / n.nodes AS share
FROM (SELECT app, count(*) AS pods FROM pods GROUP BY app) p
CROSS JOIN (SELECT count(*) AS nodes FROM nodes WHERE ready) n;

-- @hard_constraint
CREATE VIEW even_spread AS
SELECT p.app, p.node
FROM pods p
JOIN shares s ON s.app = p.app
WHERE p.node IS NOT NULL
GROUP BY p.app, p.node, s.share
HAVING count(*) <= s.share;
